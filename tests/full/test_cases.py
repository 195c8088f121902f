"""Every case as `python -m tests.full` runs it: those that end before anything is compiled each time, the others with
`pytest -m slow` (a quarter of an hour)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import faults, run_case
from .expectations import CASES, Case

_FOLDER = Path(__file__).parent.parent / "data" / "cases"
_NOTHING_COMPILED = (2, 3)


def _parameters() -> list[object]:
    quick = [case.status in _NOTHING_COMPILED for case in CASES]
    marks = [() if each else (pytest.mark.slow,) for each in quick]
    return [pytest.param(case, id=case.name, marks=marked) for case, marked in zip(CASES, marks)]


@pytest.mark.parametrize("case", _parameters())
def test_a_case_ends_as_it_must(case: Case) -> None:
    outcome = run_case(case, _FOLDER)
    assert not faults(case, outcome), outcome.answer

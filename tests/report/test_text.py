"""The verdict as text: it fits a terminal, counts rightly, and keeps numbers with their units."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcompile_tui.core.verdict import decide
from tcompile_tui.report.text import unbroken, verdict_text
from tests.ui.recorded import CONVNET, TRANSFORMER, TWO_BREAKS, recorded_run, state_of


def text_of(name: str, folder: Path, width: int = 79) -> str:
    state = state_of(recorded_run(name, folder))
    return verdict_text(state, decide(state), width=width)


@pytest.mark.parametrize("name", [CONVNET, TRANSFORMER])
def test_lines_fit(name: str, tmp_path: Path) -> None:
    assert max(map(len, text_of(name, tmp_path).splitlines())) <= 79


@pytest.mark.parametrize("width", [40, 52, 64, 79])
def test_no_line_ends_between_a_number_and_its_unit(width: int, tmp_path: Path) -> None:
    text = text_of(CONVNET, tmp_path, width)
    assert re.findall(r"\d\n *(?:s|ms|h|%|million|MiB|steps|pairs)(?!\w)", text) == []


def test_one_is_no_plural(tmp_path: Path) -> None:
    assert "1 graph, 0 graph breaks, 0 recompiles" in text_of(CONVNET, tmp_path)


def test_a_slower_mode_saves_nothing_and_is_never_paid_back(tmp_path: Path) -> None:
    text = text_of(TWO_BREAKS, tmp_path)
    assert "cold start 13.6 s, never paid back" in text
    assert "saves      nothing: 169 % more time in 1 h, 169 % in 1 day, 169 % in 1 week" in text
    assert "8 graphs, 2 graph breaks, 4 recompiles" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("after 9,704 steps (20.6 s); 83 % of 24 h", "after 9,704_steps (20.6_s); 83_% of 24_h"),
        ("(1.47 million), 28.0 MiB more", "(1.47_million), 28.0_MiB more"),
        ("line 3 shows 2 setups in 4 halls", "line 3 shows 2 setups in 4 halls"),
    ],
)
def test_numbers_are_bound_to_units_only(text: str, expected: str) -> None:
    assert unbroken(text, "_") == expected

"""What is told of outputs beside their agreement."""

from __future__ import annotations

import pytest

from tcompile_tui.core.findings import Severity
from tcompile_tui.core.verdict import decide
from tests.core.streams import Compiled, both, eager_process, leaf, replay


@pytest.mark.parametrize(("nan_in_both", "told"), [(0, False), (12, True)])
def test_nan_of_eager_is_told_and_changes_no_decision(nan_in_both: int, told: bool) -> None:
    clean = decide(replay(eager_process(), *both(Compiled(speedup=1.5))))
    verdict = decide(replay(eager_process(), *both(Compiled(speedup=1.5, output=leaf(0.0, nan_in_both=nan_in_both)))))
    found = [finding for finding in verdict.findings if finding.id == "outputs-nan"]
    assert [finding.severity for finding in found] == [Severity.NOTE] * told
    assert all("12 NaNs of 1,000 values" in finding.evidence for finding in found)
    assert verdict.decision is clean.decision

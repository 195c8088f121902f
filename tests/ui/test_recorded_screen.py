"""A screen that tmux captured on a GPU machine while a real run went on, beside what its records give here."""

from __future__ import annotations

import re
from pathlib import Path

from tcompile_tui.core.units import ratio
from tcompile_tui.core.verdict import Decision, decide
from tests.ui.recorded import recorded_run, state_of

SCREENS = Path(__file__).parent.parent / "data" / "screens"


def _words(name: str) -> str:
    """The screen's text in one line, without frames."""
    return " ".join(re.sub(r"[^\x20-\x7e\n]", " ", (SCREENS / f"{name}.txt").read_text()).split())


def test_the_verdict_on_the_captured_screen_is_the_one_of_the_records(tmp_path: Path) -> None:
    verdict = decide(state_of(recorded_run("h200-pointwise_chain", tmp_path)))
    captured = _words("h200-tmux-verdict")
    assert verdict.decision is Decision.ENABLE
    assert verdict.best is not None and verdict.best.result.speedup is not None
    # The interval on the screen was that of one process; today's holds the average process and is wider.
    assert f"{ratio(verdict.best.result.speedup.value)} (" in captured
    assert verdict.paste_line is not None and verdict.paste_line in captured


def test_the_gpu_panel_was_filled(tmp_path: Path) -> None:
    captured = _words("h200-tmux-run")
    for what, unit in (("GPU", "%"), ("SM clock", "MHz"), ("power", "W"), ("temp", "C"), ("memory", "GiB")):
        assert re.search(rf"{what} +[\d.,]+ {unit}", captured), what
    samples = state_of(recorded_run("h200-pointwise_chain", tmp_path)).gpu
    assert all(sample.utilisation_percent is not None and sample.power_w is not None for sample in samples)
    assert any(sample.other_pids == () for sample in samples), "once the worker is listed, others can be told from it"

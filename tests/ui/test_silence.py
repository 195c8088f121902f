"""A compile that says nothing for long: the Run screen tells what is at work, instead of looking frozen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Mode, Phase
from tests.ui.replaying import StubFeed, shown

BEGUN = (
    ev.PhaseStarted(t_s=1.0, process=1, phase=Phase.COLD, mode=Mode.DEFAULT, pid=7, limit_s=600),
    ev.FrameStarted(t_s=2.0, process=1, compile_id="0/0", function="forward", file="net.py", line=3),
    ev.CompileSpan(
        t_s=3.0, process=1, begins=True, stage=ev.CompileStage.KERNELS, stage_name="compile_file", compile_id="0/0"
    ),
    ev.HostSample(
        t_s=60.0, cpu_percent=50, memory_used_bytes=1, memory_total_bytes=2, worker_cpu_percent=99, busiest="cc1plus"
    ),
)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_program_at_work_is_named(tmp_path: Path, size: tuple[int, int]) -> None:
    async with shown(StubFeed(tmp_path, BEGUN), path=tmp_path, size=size) as screen:
        text = await screen.go_to(60.0)
        assert "no progress for 57 s in g++" in text


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_a_stage_works_on_is_named_and_literal(tmp_path: Path, size: tuple[int, int]) -> None:
    autotune = ev.CompileSpan(
        t_s=4.0, process=1, begins=True, stage=ev.CompileStage.AUTOTUNE, stage_name="autotune", compile_id="0/0",
        detail="mm\x1b[1m [64,64]",
    )  # fmt: skip
    async with shown(StubFeed(tmp_path, [*BEGUN[:2], autotune]), path=tmp_path, size=size) as screen:
        text = await screen.go_to(6.0)
        assert re.search(r"autotun\w*  mm.* \[64,64\] +[\d.]+ s", text) and "\x1b" not in text, text

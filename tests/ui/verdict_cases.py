"""A run for every decision, and the Verdict screen on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Mode, Phase, Plan
from tcompile_tui.core.state import RunState
from tcompile_tui.core.verdict import Decision
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui.screens.verdict import VerdictScreen
from tests.core.streams import Compiled, Process, both, done, eager_process, ended, leaf, replay, started
from tests.ui.screen_app import ScreenApp, screen_text

SOURCE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        x = x.relu()
        print("[bold]shape[/bold]", x.shape)
        return x.sin()
"""
BREAK = ev.GraphBreak(
    compile_id="0/0", file="model.py", line=7, function="Net.forward", source='print("[bold]shape[/bold]", x.shape)',
    reason="Failed to trace builtin operator\n  Explanation: below", explanation="Dynamo cannot trace `print`.",
    hints=("Remove the call.", "Or move it out."), gb_id="GB0059", url="https://example.org/gb0059",
)  # fmt: skip


def failing(phase: Phase, fault: str, mode: Mode | None = None, **changes: Any) -> Process:
    failure = ev.WorkerFailed(
        stage="steps", error_type="RuntimeError", message="shapes (3x4) and (5x6) do not fit", file="net.py", line=12,
        fault=fault, traceback='Traceback (most recent call last):\n  File "net.py", line 12, in forward\nRuntimeError',
    )  # fmt: skip
    return [started(phase, mode), changed(failure, **changes), ended(phase, mode, ev.Outcome.ERROR)]


def ran_eager() -> Process:
    frame = ev.FrameStarted(compile_id="0/0", function="forward", file="net.py", line=3)
    dropped = ev.FrameCompiled(compile_id="0/0", backward=False, fail_type="Unsupported", fail_reason="generator")
    return [started(Phase.COLD, Mode.DEFAULT), frame, dropped, *done(Phase.COLD, Mode.DEFAULT)]


def with_breaks(*breaks: ev.GraphBreak, **plan: Any) -> RunState:
    cold, warm = both(Compiled(speedup=1.8))
    return replay(eager_process(), [*cold[:4], *breaks, *cold[4:]], warm, plan=Plan(**(plan or {"steps": 1_000_000})))


CASES: dict[Decision, Callable[[], RunState]] = {
    Decision.ENABLE: lambda: replay(eager_process(), *both(Compiled(speedup=1.8))),
    Decision.ENABLE_WITH_CARE: lambda: replay(eager_process(), *both(Compiled(speedup=1.034))),
    Decision.TEST_CAREFULLY: lambda: replay(eager_process(), *both(Compiled(output=leaf(0.3)))),
    Decision.SKIP: lambda: replay(
        eager_process(), *both(Compiled(speedup=0.8)), *both(Compiled(Mode.MAX_AUTOTUNE, speedup=0.9)),
        modes=(Mode.DEFAULT, Mode.MAX_AUTOTUNE), plan=Plan(hours=8.0),
    ),
    Decision.RAN_EAGER: lambda: replay(eager_process(), ran_eager()),
    Decision.CANNOT_COMPILE: lambda: replay(eager_process(), failing(Phase.COLD, "environment", Mode.DEFAULT)),
    Decision.FAILED: lambda: replay(failing(Phase.EAGER, "model")),
    Decision.STOPPED: RunState,
}  # fmt: skip


def app_for(state: RunState, folder: RunFolder | Path, ascii_only: bool = False) -> ScreenApp:
    folder = RunFolder(folder) if isinstance(folder, Path) else folder
    return ScreenApp(lambda: VerdictScreen(folder, state), ascii_only=ascii_only)


async def text_of(app: ScreenApp, *keys: str, size: tuple[int, int] = (80, 24)) -> str:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        app.last = app.screen
        return screen_text(app)

"""Whole runs of the supervisor in this process, with the scripted worker in place of torch: about a second each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tcompile_tui.core.events import Event
from tcompile_tui.core.spec import Mode, Preset, RunSpec, Target
from tcompile_tui.core.state import RunState
from tcompile_tui.host.devices import Device
from tcompile_tui.host.event_log import read_events
from tcompile_tui.host.run_request import RunRequest, prepare
from tcompile_tui.host.stopping import StopRequest
from tcompile_tui.host.supervisor import Finished, execute
from tests.host.fake_run import fake_python

_MODEL = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@dataclass(frozen=True)
class Ended:
    """A run that came to its end, with what its folder holds."""

    finished: Finished

    @property
    def events(self) -> list[Event]:
        return list(read_events(self.finished.folder.events))

    @property
    def notices(self) -> dict[str, str]:
        return {notice.code: notice.text for notice in self.finished.state.notices}


def request(folder: Path, script: str = "", budget_s: float = 60.0) -> RunRequest:
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(_MODEL)
    spec = RunSpec(
        Target("model.py", None, None), device="cpu", preset=Preset.SMOKE, budget_s=budget_s, modes=(Mode.DEFAULT,)
    )
    return RunRequest(
        spec=spec,
        cwd=folder,
        runs_dir=folder / "runs",
        command="",
        python=str(fake_python(folder)),
        extra_environment={"SCRIPT": script},
    )


def run_scripted(
    folder: Path,
    script: str = "",
    budget_s: float = 60.0,
    device: Device | None = None,
    on_change: Callable[[RunState], None] = lambda state: None,
) -> Ended:
    """On the main thread. `device` stands in for the one that would be found."""
    prepared = prepare(request(folder, script, budget_s))
    if device is not None:
        prepared = replace(prepared, device=device)
    return Ended(execute(prepared, StopRequest(), on_change))

"""What an interpreter's torch gives of every compiler signal: `tests/worker/signals.py` in three fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tcompile_tui.host import roots
from tcompile_tui.host.interpreter import release_of

from .signals import MARK, SIGNALS

YES, NOT_AVAILABLE = "yes", "not available"
_REPOSITORY = Path(__file__).parent.parent.parent
_LIMIT_S = 300.0


@dataclass(frozen=True)
class Contract:
    """`outcomes` maps each signal to 'yes', 'not available' or 'differs: what was found'."""

    torch: str
    python: str
    capabilities: tuple[str, ...]
    outcomes: dict[str, str]

    def broken(self) -> dict[str, str]:
        """The signals that are not as this torch should give them. What came later may be missing, but must not
        be something else."""
        release = release_of(self.torch)
        return {
            signal.name: outcome
            for signal in SIGNALS
            for outcome in [self.outcomes.get(signal.name, "no outcome")]
            if outcome != YES and (outcome != NOT_AVAILABLE or signal.since <= release)
        }


class ContractError(Exception):
    """The programs did not come to their end."""


def check_contract(python: str) -> Contract:
    """Run the programs under `python`, on private and at first empty caches. Raises ContractError."""
    root = roots.create_root()
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("TORCH_LOGS", "TORCH_COMPILE_DISABLE")},
        **root.environment,
        "PYTHONPATH": str(_REPOSITORY),
        "TCOMPILE_TUI_CONTRACT_ROOT": str(root.path),
    }
    try:
        cold = _finish(_start(python, "cold", environment))
        others = [
            _start(python, "warm", environment),
            _start(python, "disabled", {**environment, "TORCH_COMPILE_DISABLE": "1"}),
        ]
        warm, disabled = (_finish(process) for process in others)
    finally:
        root.remove()
    return Contract(
        cold["torch"], cold["python"], tuple(cold["capabilities"]),
        {**cold["outcomes"], **warm["outcomes"], **disabled["outcomes"]},
    )  # fmt: skip


def _start(python: str, process: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-m", "tests.worker.signals", process],
        env=environment, cwd=_REPOSITORY, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )  # fmt: skip


def _finish(process: subprocess.Popen[str]) -> dict[str, object]:
    try:
        output, errors = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise ContractError(f"{process.args} did not end in {_LIMIT_S:.0f} s") from error
    for line in output.splitlines():
        if line.startswith(MARK):
            report: dict[str, object] = json.loads(line.removeprefix(MARK))
            return report
    raise ContractError(f"{process.args} gave no report (status {process.returncode}): {errors[-2000:]}")

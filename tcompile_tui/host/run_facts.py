"""What a run says of itself before its first process: who measures what where, and what may spoil it."""

from __future__ import annotations

from datetime import datetime

import tcompile_tui
from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import RunSpec
from tcompile_tui.host import machine, roots
from tcompile_tui.host.recorder import Recorder
from tcompile_tui.host.run_folder import ProcessId, RunFolder, RunInfo
from tcompile_tui.host.run_request import Prepared

_FULL_DISK_BYTES = 2 << 30


def write_start(prepared: Prepared, run_id: str, measured: RunSpec, folder: RunFolder, recorder: Recorder) -> None:
    """The first record, and run.json. `measured` is the request's own, with the device that was chosen."""
    request, interpreter, device = prepared.request, prepared.interpreter, prepared.device
    recorder.record(
        ev.RunStarted(
            run_id=run_id,
            spec=measured,
            python=interpreter.executable,
            torch_version=interpreter.torch_version or "",
            device=device.kind,
            device_name=device.name,
        )
    )
    folder.write_info(
        RunInfo(
            run_id=run_id,
            spec=request.spec,
            command=request.command,
            cwd=str(request.cwd),
            started_at=datetime.now().astimezone().isoformat(timespec="seconds"),
            supervisor=ProcessId.own(),
            program_version=tcompile_tui.__version__,
            python=interpreter.executable,
            torch_version=interpreter.torch_version or "",
            device=device.kind,
            device_name=device.name,
            machine=machine.facts(),
            argv=request.argv,
        )
    )


def warn(prepared: Prepared, recorder: Recorder) -> None:
    """Which interpreter and device were chosen and why, and what on this machine may end or distort the run."""
    notice = recorder.notice
    notice("interpreter", f"{prepared.interpreter.executable}: {prepared.interpreter.why}")
    notice("device", f"{prepared.device.name}: {prepared.device.why}")
    ending = machine.login_kill_warning()
    if ending is not None:
        notice("login-ends-run", ending, ev.Level.WARNING)
    base = roots.base_folder().parent
    free = machine.free_bytes(base)
    if free is not None and free < _FULL_DISK_BYTES:
        notice(
            "disk-nearly-full",
            f"only {free / 2**30:.1f} GiB are free on {base} ({machine.filesystem_type(base) or 'unknown'}),"
            " where compile caches of the run go",
            ev.Level.WARNING,
        )


def warn_of_another_run(holder: str, recorder: Recorder) -> None:
    """`holder` has the claim on the device."""
    text = (
        f"another run measures on this device now ({holder}): each spoils the other's figures."
        " Wait for it, or take another device"
    )
    recorder.notice("another-run", text, ev.Level.WARNING)

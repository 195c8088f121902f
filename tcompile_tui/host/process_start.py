"""Fork or fresh: how each process of a run is started, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tcompile_tui.core.spec import Phase
from tcompile_tui.host.workers import FreshStart, Worker
from tcompile_tui.host.zygote import ForkedStart, Zygote, ZygoteError, ZygoteReady

# As long as a fresh process may well take on a slow file system: then forking saves most.
_IMPORT_LIMIT_S = 180.0
_POLL_S = 0.1
# Set right in a forked process. Any other variable may have been read when torch was imported.
_EACH_ITS_OWN = {"TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}


@dataclass(frozen=True)
class Surroundings:
    """What all processes of a run share."""

    executable: str
    archive: Path
    run_id: str
    cwd: Path
    device: str
    on_output: Callable[[bytes], None]


class ProcessStarter:
    """Starts fresh interpreters until `open` has found that forking is safe, and again after it turned out not to be.

    `notice` is told, in one line, each time that changes.
    """

    def __init__(self, shared: Surroundings, notice: Callable[[str], None]) -> None:
        self._shared = shared
        self._notice = notice
        self._zygote: Zygote | None = None

    def open(self, environment: Mapping[str, str], go_on: Callable[[], bool]) -> None:
        """Import torch and its compiler in a process to fork from. Blocks while `go_on`, which is asked often."""
        shared = self._shared
        zygote = Zygote(
            shared.executable, shared.archive, shared.run_id, environment, shared.cwd, shared.device, shared.on_output
        )
        try:
            ready = _wait_for(zygote, go_on)
            if ready is not None and ready.unfit is not None:
                raise ZygoteError(ready.unfit)
        except ZygoteError as error:
            zygote.close()
            self.stay_fresh(str(error))
            return
        if ready is None:
            zygote.close()
            return
        self._zygote = zygote
        seconds = ready.torch_s + (ready.compiler_s or 0.0)
        self._notice(
            "processes that compile are forked from one that has imported torch"
            f" ({seconds:.1f} s once, counted in every start)"
        )

    def stay_fresh(self, why: str) -> None:
        """No forking from here on."""
        self.close()
        self._notice(f"every process starts in a fresh interpreter: {why}")

    def start(self, phase: Phase, environment: Mapping[str, str]) -> Worker:
        """Forked if possible. The eager process never is: it must not have the compiler imported, and it is the one
        that tells whether the target has to be imported before torch."""
        shared = self._shared
        if self._zygote is not None and phase is not Phase.EAGER:
            differing = _differing(environment, self._zygote.environment)
            if differing:
                self.stay_fresh(f"{', '.join(differing)} is not the same for all of them")
            else:
                try:
                    return Worker(ForkedStart(self._zygote, environment), shared.on_output)
                except OSError as error:
                    self.stay_fresh(str(error))
        self.close()  # its guard and a fresh worker's would kill each other's processes
        fresh = FreshStart(shared.executable, shared.archive, shared.run_id, environment, shared.cwd)
        return Worker(fresh, shared.on_output)

    def close(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()


def _wait_for(zygote: Zygote, go_on: Callable[[], bool]) -> ZygoteReady | None:
    """None if it is not to go on. Raises ZygoteError."""
    deadline = monotonic() + _IMPORT_LIMIT_S
    while go_on():
        ready = zygote.ready(_POLL_S)
        if ready is not None:
            return ready
        if monotonic() > deadline:
            raise ZygoteError(f"importing torch and its compiler took more than {_IMPORT_LIMIT_S:.0f} s")
    return None


def _differing(environment: Mapping[str, str], imported_with: Mapping[str, str]) -> list[str]:
    """Variables that the zygote has imported torch with another value of."""
    names = {*environment, *imported_with} - _EACH_ITS_OWN
    return sorted(name for name in names if environment.get(name) != imported_with.get(name))

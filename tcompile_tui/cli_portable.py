"""`tcompile-tui caches --export FILE` and `--import FILE`: one model's compile caches as a file, with the proof."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcompile_tui.cli_shared import fail

if TYPE_CHECKING:
    from tcompile_tui.core.spec import Mode
    from tcompile_tui.core.state import ProcessState, RunState
    from tcompile_tui.host.portable import Starts
    from tcompile_tui.host.run_request import RunRequest

_NOT_COMPILED, _FAILED = 4, 6


@dataclass(frozen=True)
class _Start:
    """One measured start. `loading_s` None: nothing was loaded."""

    seconds: float
    hits: int
    misses: int
    loading_s: float | None

    def line(self, label: str) -> str:
        from tcompile_tui.core.units import duration, plural

        loading = f", {duration(self.loading_s)} of it to load the file" if self.loading_s is not None else ""
        lookups = f"{plural(self.hits, 'cache hit')}, {plural(self.misses, 'miss')}"
        return f"{label:<22}{duration(self.seconds):>9}   {lookups}{loading}"


def export_caches(file: Path, of: str, mode: str | None, python: str | None) -> None:
    """A cold start, which writes the file; then one from the file on new caches."""
    if file.exists():
        fail(f"{file} exists already: choose another name", 2)
    with _Measuring(of, mode, python) as measuring:
        written = measuring.starts.folder / "artifacts"
        cold_process = measuring.process(artifacts_to=written)
        cold = measuring.start(cold_process)
        click.echo(cold.line("cold start"))
        try:
            shutil.copyfile(written, file)
        except OSError as error:
            fail(f"cannot write {file}: {error.strerror}", 2)
        click.echo(f"{'wrote':<22}{_entries(cold_process)}")
        warm = measuring.start(measuring.process(artifacts_from=file))
        click.echo(warm.line("start from the file"))
        _check_that_it_fits(file, warm)
        _conclude(file, cold, warm, measuring.device)


def import_caches(file: Path, of: str, mode: str | None, python: str | None) -> None:
    """A start from the file on new caches; then one without it."""
    if not file.is_file():
        fail(f"{file} is no file: write one with tcompile-tui caches --export", 2)
    with _Measuring(of, mode, python) as measuring:
        warm = measuring.start(measuring.process(artifacts_from=file.absolute()))
        click.echo(warm.line("start from the file"))
        _check_that_it_fits(file, warm)
        cold = measuring.start(measuring.process())
        click.echo(cold.line("cold start"))
        _conclude(file, cold, warm, measuring.device)


def _check_that_it_fits(file: Path, warm: _Start) -> None:
    from tcompile_tui.core.literal import escaped

    if not warm.hits:
        fail(f"nothing in {escaped(str(file))} fits this model here: other code, another torch or device", _FAILED)


def _conclude(file: Path, cold: _Start, warm: _Start, device: str) -> None:
    from tcompile_tui.core.units import duration

    saved_s = cold.seconds - warm.seconds
    click.echo(f"{'saved by the file':<22}{duration(saved_s) if saved_s > 0 else 'nothing':>9}   (one start of each)")
    click.echo(
        "\nbefore the first compiled call:\n"
        f"  torch.compiler.load_cache_artifacts(open({str(file)!r}, 'rb').read())\n"
        "It fits this code, torch and device only. Loading it runs what is in it: trust where it comes from."
    )
    if device == "cpu":
        click.echo("It holds C++ as source, which is compiled once more in each new cache: most of a start on a CPU.")


def _entries(process: ProcessState) -> str:
    from tcompile_tui.core.units import size

    saved = process.artifacts_saved
    assert saved is not None, "the process is done"
    kinds = ", ".join(f"{count.entries} {count.kind}" for count in saved.counts)
    return f"{size(saved.bytes):>9}   {kinds}"


# ---------------------------------------------------------------- measuring


class _Measuring:
    """The starts of the model that is meant, for the time of a `with` block."""

    def __init__(self, of: str, mode: str | None, python: str | None) -> None:
        from tcompile_tui.core.spec import SpecError
        from tcompile_tui.host.interpreter import InterpreterError
        from tcompile_tui.host.portable import Starts
        from tcompile_tui.host.run_request import prepare
        from tcompile_tui.host.stopping import StopRequest
        from tcompile_tui.report.progress import ProgressLine

        request, chosen = _request(of, mode, python)
        try:
            prepared = prepare(request)
        except (SpecError, InterpreterError) as error:
            fail(str(error), 2)
        self.device = prepared.device.kind
        self._stop = StopRequest()
        self._progress = ProgressLine(sys.stderr)
        self.starts: Starts = Starts(prepared, chosen, self._stop, self._update)
        self._listening = self._stop.listening()
        spec, torch = request.spec, prepared.interpreter.torch_version
        click.echo(f"{spec.target}, {chosen.value}, torch {torch} on {prepared.device.name}", err=True)

    def __enter__(self) -> _Measuring:
        self._listening.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.close()
        self._listening.__exit__(*error)
        self.starts.close()

    def _update(self, state: RunState) -> None:
        if sys.stderr.isatty():
            self._progress.update(state)

    def process(self, **artifacts: Path) -> ProcessState:
        """Ends the program if the process does not come to its end."""
        process = self.starts.measure(**artifacts)
        self._progress.close()
        problem = _problem_of(process)
        if problem is not None:
            fail(*problem)
        return process

    def start(self, process: ProcessState) -> _Start:
        from tcompile_tui.core.events import CacheOutcome
        from tcompile_tui.core.results import compiled_start_s

        seconds, loaded = compiled_start_s(process), process.artifacts_loaded
        if seconds is None:
            fail("the start could not be measured: the process was stopped in it", _FAILED)
        hits, misses = map(process.compile.cache_count, (CacheOutcome.HIT, CacheOutcome.MISS))
        return _Start(seconds, hits, misses, loaded.seconds if loaded is not None else None)


def _problem_of(process: ProcessState) -> tuple[str, int] | None:
    """Why this is no compiled start, and the exit status that says so."""
    from tcompile_tui.core.failure_words import failure_text

    failure, ended = process.failure, process.ended
    if failure is not None:
        return failure_text(failure), _NOT_COMPILED if failure.fault == "environment" else _FAILED
    if not process.done:
        return f"the process did not get through: {ended.detail if ended is not None else 'n/a'}", _FAILED
    return None if process.compiled_anything else ("nothing was compiled: tcompile-tui run says why", _FAILED)


def _request(of: str, mode: str | None, python: str | None) -> tuple[RunRequest, Mode]:
    """Of a recorded run, by its folder or name, or of a target as `run` takes it."""
    from tcompile_tui.core.spec import Mode, RunSpec, SpecError, parse_target
    from tcompile_tui.host.run_folder import RunFolder
    from tcompile_tui.host.run_request import RunRequest
    from tcompile_tui.paths import default_runs_dir

    infos = (RunFolder(path).read_info() for path in (Path(of), default_runs_dir() / of))
    info = next((info for info in infos if info is not None), None)
    cwd, runs_dir = Path.cwd(), default_runs_dir().absolute()
    if info is not None:
        request = RunRequest(info.spec, Path(info.cwd), runs_dir, info.command, python or info.python, argv=info.argv)
    else:
        try:
            request = RunRequest(RunSpec(parse_target(of)), cwd, runs_dir, "", python)
        except SpecError as error:
            fail(str(error), 2)
    chosen = Mode(mode) if mode is not None else request.spec.modes[0]
    return request, chosen

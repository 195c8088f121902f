"""`tcompile-tui caches`: list the compile caches, and clear them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcompile_tui.cli_shared import fail

if TYPE_CHECKING:
    from tcompile_tui.host.cache_clear import Choice, Chosen, Cleared
    from tcompile_tui.host.cache_places import Place
    from tcompile_tui.host.caches import PlaceReport

KINDS = (
    "fx-graph", "aot-autograd", "code", "autotune", "triton", "pgo", "headers", "kernels", "locks", "kept",
    "leftovers", "runs",
)  # fmt: skip
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_SHOWN_FAILURES = 20
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_DAY_S = 86_400


def _size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """`500M`, `2GiB`, `0`: powers of 1024."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"'{value}' is no size: write for example 500M or 2GiB")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def _place_options(function: Callable[..., None]) -> Callable[..., None]:
    function = click.option(
        "--pid", "pids", type=int, multiple=True, help="Look where that process keeps its caches, too."
    )(function)
    return click.option("--runs-dir", type=click.Path(file_okay=False, path_type=Path), hidden=True)(function)


@click.group(invoke_without_command=True, short_help="List, clear, export and import compile caches.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--dir", "folders", multiple=True, type=click.Path(path_type=Path), help="Look at this folder, too.")
@click.option(
    "--export",
    "export_to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one model's caches to a file that other machines can load, and measure a start from it.",
)
@click.option(
    "--import",
    "import_from",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Measure a start from such a file. Loading it runs what is in it.",
)
@click.option("--of", metavar="RUN|TARGET", help="Whose caches: a recorded run, or a target as `run` takes it.")
@click.option("--mode", type=click.Choice(MODES), help="Mode of torch.compile. Default: the run's first, else default.")
@click.option(
    "--python", metavar="EXE", help="Interpreter that has torch. Default: the recorded run's, else as for `run`."
)
@_place_options
@click.pass_context
def caches(
    context: click.Context,
    as_json: bool,
    folders: tuple[Path, ...],
    pids: tuple[int, ...],
    runs_dir: Path | None,
    export_to: Path | None,
    import_from: Path | None,
    of: str | None,
    mode: str | None,
    python: str | None,
) -> None:
    """List the compile caches: where, how big, how many files, on what, in use by whom.

    `tcompile-tui caches clear --help` says how to clear them.
    """
    if context.invoked_subcommand is not None:
        return
    if export_to is not None or import_from is not None:
        _move(export_to, import_from, of, mode, python)
        return
    reports = _survey(_places(folders, pids, runs_dir))
    if as_json:
        import msgspec

        from tcompile_tui.host.caches import caches_document

        click.echo(msgspec.json.format(msgspec.json.encode(caches_document(reports)), indent=2))
    else:
        click.echo("\n".join(_listing(reports)))


@caches.command()
@click.option("--all", "everything", is_flag=True, help="Every compile cache. Recorded runs stay.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these kinds.")
@click.option("--run", "run", metavar="RUN", help="Only what this recorded run compiled and left.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Only what was written before.")
@click.option("--down-to", metavar="SIZE", callback=_size, help="Keep the newest that fit into this size: 500M, 2GiB.")
@click.option("--dir", "folders", multiple=True, type=click.Path(path_type=Path), help="Only in this folder.")
@click.option("--dry-run", is_flag=True, help="List every file or folder that would go, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask. What a process uses stays, unless --in-use is given.")
@click.option("--in-use", is_flag=True, help="With --yes: clear what a process uses, too. It may fail or recompile.")
@_place_options
def clear(run: str | None, folders: tuple[Path, ...], **options: Any) -> None:
    """Clear compile caches.

    Only entries that torch, Triton or this program wrote are deleted, told by their layout; links are not followed
    and other file systems not entered. Exit status: 0 done, 2 bad input, 5 not confirmed, 6 some could not be deleted.
    """
    conditions = (options["kinds"], run, folders, options["older_than"] is not None, options["down_to"] is not None)
    if not options["everything"] and not any(conditions):
        fail("say what to clear: --all, --kind, --run, --older-than, --down-to or --dir", 2)
    reports = _survey(_places(folders, options["pids"], options["runs_dir"]))
    chosen, used = _chosen(reports, _choice(reports, run, folders, options), options)
    for line in used:
        click.echo(f"warning: {line}", err=True)
    if not chosen:
        click.echo("nothing to clear")
        return
    click.echo("\n".join(_plan(chosen, in_full=options["dry_run"])))
    if options["dry_run"]:
        return
    _confirm(options["yes"])
    _report(_clear(chosen, reports))


def _move(
    export_to: Path | None, import_from: Path | None, of: str | None, mode: str | None, python: str | None
) -> None:
    from tcompile_tui.cli_portable import export_caches, import_caches

    if of is None:
        fail("say whose caches: --of RUN, or --of model.py", 2)
    if export_to is not None and import_from is not None:
        fail("give --export or --import, not both", 2)
    if export_to is not None:
        export_caches(export_to, of, mode, python)
    elif import_from is not None:
        import_caches(import_from, of, mode, python)


# ---------------------------------------------------------------- looking


def _places(folders: Sequence[Path], pids: Sequence[int], runs_dir: Path | None) -> list[Place]:
    from tcompile_tui.host.cache_places import PlaceError, all_places
    from tcompile_tui.paths import default_runs_dir

    try:
        return all_places(os.environ, (runs_dir or default_runs_dir()).absolute(), folders, pids)
    except PlaceError as error:
        fail(str(error), 2)


def _survey(places: Sequence[Place]) -> list[PlaceReport]:
    from tcompile_tui.host.caches import survey

    seen = 0

    def progress(files: int) -> None:
        nonlocal seen
        seen += files
        click.echo(f"\r{seen:,} files", nl=False, err=True)

    reports = list(survey(places, progress if sys.stderr.isatty() else lambda files: None))
    if seen:
        click.echo("\r\033[K", nl=False, err=True)
    return reports


def _listing(reports: Sequence[PlaceReport]) -> list[str]:
    from tcompile_tui.core.units import duration, plural, size
    from tcompile_tui.host.cache_kinds import IN_MEMORY
    from tcompile_tui.host.caches import printable

    now_s = time.time()
    lines = []
    for report in reports:
        lines.append(f"{report.place.family.label}  {printable(report.place.path)}  ({report.place.why})")
        lines += (f"  {fact}" for fact in _facts(report))
        for total in report.kinds:
            age = duration(max(0.0, now_s - total.newest_s))
            lines.append(
                f"  {total.kind.label:<22} {size(total.bytes):>9} {plural(total.files, 'file'):>14}   newest {age} old"
            )
    caches_only = [report for report in reports if report.is_cache]
    bytes_, files = (sum(getattr(report, name) for report in caches_only) for name in ("bytes", "files"))
    lines += ["", f"{size(bytes_)} in {plural(files, 'file')}; recorded runs are not counted", ""]
    lines.append("Inside a running process, nothing on disk:")
    lines += (f"  {note.line}\n      {note.effect}" for note in IN_MEMORY)
    return lines


def _facts(report: PlaceReport) -> list[str]:
    from tcompile_tui.core.units import count, plural, size
    from tcompile_tui.host.caches import printable

    contents, facts = report.contents, report.file_system
    if contents.problem is not None:
        return [printable(contents.problem)]
    if not contents.exists:
        return ["not there"]
    note = ", RAM: lost at a reboot" if facts.is_memory else ", slow for many small files" if facts.is_network else ""
    inodes = f" and {count(facts.free_inodes)} inodes" if facts.free_inodes is not None else ""
    lines = [f"{facts.kind or 'unknown file system'}{note}; {size(facts.free_bytes)}{inodes} free"]
    lines += (f"in use: {user.pid} {printable(user.command)} ({user.use.meaning})" for user in report.users)
    if contents.stranger_count:
        names = ", ".join(map(printable, contents.strangers))
        lines.append(f"{plural(contents.stranger_count, 'other file')} that no clearing touches: {names}")
    lines += (f"not counted: {printable(f.path)}: {f.reason}" for f in contents.failures)
    return lines


# ---------------------------------------------------------------- clearing


def _choice(
    reports: Sequence[PlaceReport], run: str | None, folders: Sequence[Path], options: dict[str, Any]
) -> Choice:
    from tcompile_tui.host.cache_clear import Choice
    from tcompile_tui.host.cache_kinds import COMPILE_KINDS, CacheKind
    from tcompile_tui.host.cache_places import recognise

    kinds = frozenset(map(CacheKind, options["kinds"])) or COMPILE_KINDS
    days = options["older_than"]
    return Choice(
        kinds=kinds,
        places=frozenset(recognise(folder).path for folder in folders) if folders else None,
        paths=_paths_of_run(reports, run) if run is not None else None,
        older_than_s=days * _DAY_S if days is not None else None,
        down_to_bytes=options["down_to"],
    )


def _paths_of_run(reports: Sequence[PlaceReport], run: str) -> frozenset[Path]:
    from tcompile_tui.host.caches import entries_of_run
    from tcompile_tui.host.run_folder import RunFolder
    from tcompile_tui.paths import default_runs_dir

    infos = (RunFolder(path).read_info() for path in (Path(run), default_runs_dir() / run))
    info = next((info for info in infos if info is not None), None)
    if info is None:
        fail(f"{run} is no run folder and no run in {default_runs_dir()}; see tcompile-tui runs", 2)
    paths = entries_of_run((report.contents for report in reports), info.supervisor)
    if not paths:
        click.echo(
            "that run left no caches: it compiled into private ones, removed at its end (--keep-caches keeps them)"
        )
    return paths


def _chosen(reports: Sequence[PlaceReport], choice: Choice, options: dict[str, Any]) -> tuple[list[Chosen], list[str]]:
    """What goes, and a line for each place whose user would notice."""
    from tcompile_tui.core.units import plural
    from tcompile_tui.host.cache_clear import choose
    from tcompile_tui.host.caches import printable

    chosen = choose([report.contents for report in reports], choice, time.time())
    by_place = {report.place.path: report for report in reports}
    disturbed = {part.contents.place.path: by_place[part.contents.place.path].users_of(part.entries) for part in chosen}
    left_out = options["yes"] and not options["in_use"]
    what = ": left as it is (--in-use clears it)" if left_out else ": it may fail, or compile again"
    lines = [
        f"{printable(path)} is in use by {plural(len(users), 'process')} "
        f"({', '.join(str(user.pid) for user in users)}){what}"
        for path, users in disturbed.items()
        if users
    ]
    going = [part for part in chosen if not (left_out and disturbed[part.contents.place.path])]
    return going, lines


def _plan(chosen: Sequence[Chosen], in_full: bool) -> list[str]:
    from tcompile_tui.core.units import plural, size
    from tcompile_tui.host.cache_kinds import CacheKind
    from tcompile_tui.host.caches import printable

    lines: list[str] = []
    for part in chosen:
        place = printable(part.contents.place.path)
        if in_full:
            lines += (f"{place}/{printable(entry.path)}" for entry in part.entries)
            continue
        numbers = [(kind, sum(entry.kind is kind for entry in part.entries)) for kind in CacheKind]
        kinds = ", ".join(f"{kind.label} {number:,}" for kind, number in numbers if number)
        lines.append(f"{place}: {size(part.bytes)} in {plural(part.files, 'file')} ({kinds})")
    total = f"{size(sum(part.bytes for part in chosen))} in {plural(sum(part.files for part in chosen), 'file')}"
    return [*lines, f"{total} would go" if in_full else f"{total} in all"]


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        fail("there is no terminal to ask on: say --yes, or --dry-run to see what would go", 2)
    if not click.confirm("Delete this?", err=True):
        fail("nothing was deleted", 5)


def _clear(chosen: Sequence[Chosen], reports: Sequence[PlaceReport]) -> Cleared:
    from tcompile_tui.host.cache_clear import clear as clear_entries

    return clear_entries(chosen, in_use={report.place.path for report in reports if report.users})


def _report(cleared: Cleared) -> None:
    from tcompile_tui.core.units import plural, size
    from tcompile_tui.host.caches import printable

    click.echo(f"deleted {size(cleared.bytes)} in {plural(cleared.files, 'file')}")
    for failure in cleared.failures[:_SHOWN_FAILURES]:
        click.echo(f"error: {printable(failure.path)}: {failure.reason}", err=True)
    if len(cleared.failures) > _SHOWN_FAILURES:
        click.echo(f"error: {len(cleared.failures) - _SHOWN_FAILURES:,} more could not be deleted", err=True)
    raise SystemExit(6 if cleared.failures else 0)

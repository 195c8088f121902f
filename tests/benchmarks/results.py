"""Run the benchmarks and write RESULTS.md: `python -m tests.benchmarks.results [NAME ...]`.

    python -m tests.benchmarks.results                        # all that this machine can run
    python -m tests.benchmarks.results fidelity --device cuda
    python -m tests.benchmarks.results --merge FILE ...       # records that `--json` wrote on another machine
    python -m tests.benchmarks.results --render               # the page alone

Every benchmark runs in a process of its own and hands over a `Record`. results.jsonl keeps the newest record of each
benchmark and device, a line each; RESULTS.md is made from that file and nothing else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

import msgspec

from tests.benchmarks.record import Figure, Record, device_here, met_text, read_records
from tests.benchmarks.tables import markdown_table

_HERE = Path(__file__).parent
_PROJECT = _HERE.parents[1]
_RECORDS, _PAGE = "results.jsonl", "RESULTS.md"
_DEVICE, _PYTHON = "{device}", "{python}"


@dataclass(frozen=True)
class Benchmark:
    """`devices`: where it is to be run. `options` are those of a run that counts, with {device} or {python} in them."""

    name: str
    title: str
    options: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    module: str = ""

    @property
    def path(self) -> str:
        return self.module or f"tests.benchmarks.{self.name}"


_BOTH = ("cpu", "cuda")
BENCHMARKS = (
    Benchmark("fidelity", "Step time reported against a plain loop, and cost of timing", ("--device", _DEVICE), _BOTH),
    Benchmark("aa", "Eager against eager: differences that are none", ("--runs", "2100")),
    Benchmark("coverage", "Coverage of the speedup's interval", ("--runs", "2000", "--seed", "2027")),
    Benchmark("false_steady", "Steady said falsely", ("--runs", "200")),
    Benchmark("breakeven_coverage", "Coverage of the break-even's interval", ("--runs", "1000")),
    Benchmark("recorded", "Series recorded on an H200, judged again"),
    Benchmark("against_script", "Sign and size on real models, beside the usual script", devices=("cuda",)),
    Benchmark("script_agreement", "The reproduction script beside the report", ("--device", _DEVICE), _BOTH),
    Benchmark("by_hand", "Time to a verdict against the same facts by hand", devices=_BOTH),
    Benchmark("ui_beside", "The screens beside a run", devices=_BOTH),
    Benchmark("startup", "First paint"),
    Benchmark("frame_cost", "A frame of the Run screen"),
    Benchmark("timing_plot", "A frame of the timing plot alone"),
    Benchmark("open_run", "Opening a long run, and memory of the screens"),
    Benchmark("caches", "Large compile caches"),
    Benchmark("defects", "Wrong outputs that the accuracy check finds", ("--device", _DEVICE), _BOTH),
    Benchmark("training", "Training with cudagraphs", ("--device", _DEVICE), ("cuda",)),
    Benchmark("zoo", "Architectures", ("--python", _PYTHON)),
    Benchmark(
        "zoo_real", "Architectures at real sizes", ("--real", "--device", _DEVICE), ("cuda",),
        module="tests.benchmarks.zoo",
    ),
    Benchmark("cases", "Hazard cases", module="tests.full"),
    Benchmark("hazards_gpu", "Hazards of a GPU", devices=("cuda",), module="tests.host.hazards.gpu"),
    Benchmark("soak", "Runs in a row"),
)  # fmt: skip


def run(benchmark: Benchmark, device: str, python: str | None) -> list[Record]:
    """What it handed over; nothing, and a line on stderr that says why, where it could not run."""
    given = {_DEVICE: device, _PYTHON: python}
    options = [given.get(word, word) for word in benchmark.options]
    words = [word for word in options if word is not None]
    if find_spec(benchmark.path) is None:
        return _not_run(benchmark, "there is no such module")
    if len(words) != len(options):
        return _not_run(benchmark, "it needs --python EXE")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        began = monotonic()
        command = [sys.executable, "-m", benchmark.path, *words, "--json", str(file)]
        done = subprocess.run(command, cwd=_PROJECT, stdin=subprocess.DEVNULL, check=False)
        if not file.exists():
            return _not_run(benchmark, f"it ended with {done.returncode} and without a record")
        print(f"{benchmark.name}: {monotonic() - began:.0f} s\n", file=sys.stderr, flush=True)
        return read_records(file)


def _not_run(benchmark: Benchmark, why: str) -> list[Record]:
    print(f"{benchmark.name}: not run: {why}\n", file=sys.stderr, flush=True)
    return []


def merged(records: Iterable[Record]) -> list[Record]:
    """The newest of each benchmark and device, in the order of BENCHMARKS; ones that are not listed come last."""
    newest: dict[tuple[str, str], Record] = {}
    for record in sorted(records, key=lambda record: record.date):
        newest[record.key] = record
    order = {benchmark.name: number for number, benchmark in enumerate(BENCHMARKS)}
    return sorted(newest.values(), key=lambda record: (order.get(record.benchmark, len(order)), record.key))


def page(records: Sequence[Record]) -> str:
    """RESULTS.md."""
    known = {record.key: record for record in records}
    expected = [(benchmark.name, device) for benchmark in BENCHMARKS for device in benchmark.devices]
    missing = [key for key in expected if key not in known]
    figures = [figure for record in records for figure in record.figures]
    met, failed = (sum(figure.met is wanted for figure in figures) for wanted in (True, False))
    parts = [
        "# Results",
        f"`python -m tests.benchmarks.results` wrote this page from {_RECORDS}; no row is typed by hand. Of the figures"
        f"\nwith a bar {met} hold it and {failed} do not; {len(missing)} benchmarks were not run. Times of a busy host"
        "\nare worth little, so each row tells its load. A bar that is for a GPU is not held against a CPU.",
        markdown_table(
            ("what", "found", "bar", "met", "where", "versions", "date"),
            [*_rows(known.values()), *(_missing_row(*key) for key in missing)],
        ),
        "Earlier runs and longer tables: [timed blocks on an H200](RESULTS_FIDELITY.md), [the usual script on an"
        " H200](RESULTS_AGAINST_SCRIPT.md),\n[statistics, with how they were tuned](RESULTS_STATISTICS.md),"
        " [architectures](zoo.md), [cases](../full/table.md), [hazards](../host/hazards/README.md).",
        *(part for record in records for part in _details(record)),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(records: Iterable[Record]) -> Iterator[tuple[str, ...]]:
    for record in records:
        for figure in record.figures:
            yield (*_cells(figure), record.machine, f"torch {record.torch}, Python {record.python}", record.date[:10])


def _cells(figure: Figure) -> tuple[str, ...]:
    return figure.name, figure.found, figure.bar, met_text(figure)


def _missing_row(name: str, device: str) -> tuple[str, ...]:
    title = next(benchmark.title for benchmark in BENCHMARKS if benchmark.name == name)
    return f"{title} ({name})", "not run", "", "", "a GPU" if device == "cuda" else "a CPU", "", ""


def _details(record: Record) -> Iterator[str]:
    title = next((benchmark.title for benchmark in BENCHMARKS if benchmark.name == record.benchmark), record.benchmark)
    yield f"## {title}: {record.machine}"
    yield f"`{record.command}`, {record.date}"
    for shown in record.tables:
        yield markdown_table(shown.heads, shown.rows)
    yield from record.notes


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help="of benchmarks; default: all that can run here")
    options.add_argument("--device", choices=_BOTH, help="default: cuda where there is one")
    options.add_argument("--python", metavar="EXE", help="interpreter with timm, torchvision and transformers, for zoo")
    options.add_argument("--merge", nargs="+", type=Path, default=[], metavar="FILE", help="take in these records")
    options.add_argument("--render", action="store_true", help="run nothing, write the page")
    options.add_argument("--folder", type=Path, default=_HERE, help=f"where {_RECORDS} and {_PAGE} lie")
    asked = options.parse_args()
    if unknown := set(asked.names) - {benchmark.name for benchmark in BENCHMARKS}:
        options.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    file = asked.folder / _RECORDS
    records = read_records(file) if file.exists() else []
    for path in asked.merge:
        records += read_records(path)
    chosen: list[Benchmark] = []
    if not asked.render and not asked.merge:
        device = asked.device or device_here()
        chosen = [b for b in BENCHMARKS if (b.name in asked.names if asked.names else device in b.devices)]
    complete = True
    for benchmark in chosen:
        found = run(benchmark, device, asked.python)
        complete = complete and bool(found)
        records += found
        _keep(asked.folder, merged(records))
    _keep(asked.folder, merged(records))
    return 0 if complete else 1


def _keep(folder: Path, records: list[Record]) -> None:
    (folder / _RECORDS).write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    (folder / _PAGE).write_text(page(records))


if __name__ == "__main__":
    sys.exit(main())

"""The one form in which every benchmark hands over what it found: `--json FILE` writes a `Record`.

A benchmark makes one with `record`; `publish` prints its tables and figures and writes the file. `results.py` keeps
records of several machines in results.jsonl and renders RESULTS.md from them.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from tests.benchmarks.tables import markdown_table


class Figure(msgspec.Struct, frozen=True):
    """One row of RESULTS.md. `met` is None where the bar is not for this machine, or there is none."""

    name: str
    found: str
    bar: str = ""
    met: bool | None = None


class Table(msgspec.Struct, frozen=True):
    """What the figures rest on, as it is printed."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Record(msgspec.Struct, frozen=True):
    """What one benchmark found on one machine. `device` is cpu or cuda; `date` is UTC, ISO 8601."""

    benchmark: str
    device: str
    machine: str
    torch: str
    python: str
    date: str
    command: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """A newer record with the same key takes the place of an older one."""
        return self.benchmark, self.device


def device_here() -> str:
    """Where a run without `--device` goes. Opens CUDA, so not before a fork."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Of a benchmark: its docstring as help, and `--json`."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the record to this file")
    return made


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(tuple(heads), tuple(tuple(row) for row in rows))


def record(
    benchmark: str,
    figures: Sequence[Figure],
    tables: Sequence[Table] = (),
    notes: Sequence[str] = (),
    *,
    device: str = "cpu",
) -> Record:
    """What was found here and now. `device` is where the steps ran: cpu or cuda, with or without an index."""
    kind = device.partition(":")[0]
    return Record(
        benchmark=benchmark,
        device=kind,
        machine=_machine(kind),
        torch=_torch_version(),
        python=platform.python_version(),
        date=datetime.now(timezone.utc).isoformat(timespec="minutes"),
        command=" ".join(["python -m", _module(), *_arguments()]),
        figures=tuple(figures),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def publish(found: Record, path: Path | None) -> None:
    """Print it, and write it to `path`."""
    print(f"{found.machine}, torch {found.torch}, Python {found.python}\n")
    for shown in found.tables:
        print(markdown_table(shown.heads, shown.rows) + "\n")
    print(markdown_table(("", "found", "bar", "met"), [(f.name, f.found, f.bar, met_text(f)) for f in found.figures]))
    for note in found.notes:
        print(f"\n{note}")
    write(found, path)


def write(found: Record, path: Path | None) -> None:
    if path is not None:
        path.write_bytes(msgspec.json.encode(found) + b"\n")


def met_text(figure: Figure) -> str:
    return {True: "yes", False: "NO", None: ""}[figure.met]


def read_records(path: Path) -> list[Record]:
    """Of a file with one record a line. Raises msgspec.DecodeError, OSError."""
    return [msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines() if line.strip()]


def _machine(device: str) -> str:
    """The processor or the GPU; with the load, without which no time on a shared host can be judged."""
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    if device == "cuda":
        import torch

        return f"{torch.cuda.get_device_name()}, {load}"
    return f"{_processor()}, {load}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "n/a"


def _module() -> str:
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec is not None else "?"


def _arguments() -> list[str]:
    """As given, without `--json FILE`, which is of no interest to who repeats it."""
    kept, given = [], iter(sys.argv[1:])
    for word in given:
        if word == "--json":
            next(given, None)
        elif not word.startswith("--json="):
            kept.append(word)
    return kept

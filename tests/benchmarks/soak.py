"""`python -m tests.benchmarks.soak [--runs N]`: scripted runs in a row, and what they leave behind.

Every run is one of the real supervisor in this very process, with its guard and its worker processes; only torch is
scripted. Nothing may grow: descriptors, threads, children, private folders, lock files, memory.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from time import monotonic

import psutil

from tcompile_tui.host import roots
from tcompile_tui.host.reclaim import descendants_of
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.host.hazards.scripted import run_scripted

_SETTLING_RUNS = 10  # first uses of modules and pools
_MAX_GROWTH_BYTES = 8 << 20
_ENDS = ("", "fails", "killed", "segfault", "leaves", "forge", "caches-lost", "crash-afterwards")


@dataclass(frozen=True)
class Left:
    """What this process holds, and what lies in its private folder."""

    descriptors: int
    threads: int
    children: int
    folders: int
    temporaries: int
    memory_bytes: int

    @classmethod
    def now(cls) -> Left:
        gc.collect()
        base = roots.base_folder()
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            threads=threading.active_count(),
            children=len(descendants_of(os.getpid())),
            folders=len(list(base.iterdir())) if base.is_dir() else 0,
            temporaries=len(list(Path(tempfile.gettempdir()).iterdir())),
            memory_bytes=psutil.Process().memory_info().rss,
        )

    def more_than(self, before: Left) -> list[str]:
        """What has grown, in words."""
        names = ("descriptors", "threads", "children", "folders", "temporaries")
        more = [f"{getattr(self, n) - getattr(before, n)} {n}" for n in names if getattr(self, n) > getattr(before, n)]
        grown = self.memory_bytes - before.memory_bytes
        return [*more, f"{grown / 2**20:.1f} MiB"] if grown > _MAX_GROWTH_BYTES else more


@contextlib.contextmanager
def private_places() -> Iterator[Path]:
    """Folders of this benchmark's own, so that what others leave is not counted."""
    kept = {name: os.environ.get(name) for name in (roots.PRIVATE_VARIABLE, roots.HEADERS_VARIABLE, "TMPDIR")}
    home = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    for name in ("tmp", "headers"):
        (home / name).mkdir()
    (home / "headers" / "x.gch").touch()
    os.environ |= {
        roots.PRIVATE_VARIABLE: str(home / "p"), roots.HEADERS_VARIABLE: str(home / "headers"),
        "TMPDIR": str(home / "tmp"),
    }  # fmt: skip
    tempfile.tempdir = None
    try:
        yield home
    finally:
        for name, value in kept.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
        shutil.rmtree(home, ignore_errors=True)


def soak(runs: int, settling: int = _SETTLING_RUNS, tell_every: int = 50) -> tuple[Left, Left]:
    """What was there after `settling` runs, and after `runs` more, which end in all sorts of ways."""
    with private_places() as home:
        before = Left.now()
        started = monotonic()
        for number in range(settling + runs):
            folder = home / "run"
            run_scripted(folder, _ENDS[number % len(_ENDS)])
            shutil.rmtree(folder)
            if number + 1 == settling:
                before = Left.now()
            elif tell_every and (number + 1 - settling) % tell_every == 0:
                print(f"{number + 1 - settling} runs, {monotonic() - started:.0f} s: {Left.now()}", flush=True)
        return before, Left.now()


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=500)
    asked = options.parse_args()
    before, after = soak(asked.runs)
    more = after.more_than(before)
    name = f"left behind by {asked.runs} runs that end in {len(_ENDS)} ways"
    figure = Figure(name, ", ".join(more) if more else "nothing", "nothing", not more)
    heads = ("", *(field.name for field in fields(Left)))
    cells = [
        (label, *(str(number) for number in astuple(left)))
        for label, left in ((f"after {_SETTLING_RUNS} runs", before), (f"after {asked.runs} more", after))
    ]
    publish(record("soak", [figure], [table(heads, cells)]), asked.json)
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())

"""Caches as a person might find them, without a disk behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.host.cache_kinds import CacheKind, Family
from tcompile_tui.host.cache_places import FileSystem, Place
from tcompile_tui.host.cache_scan import Contents, Entry
from tcompile_tui.host.cache_users import CacheUser, Use
from tcompile_tui.host.caches import PlaceReport
from tcompile_tui.ui.screens import caches, clear_caches
from tests.host.cache_trees import base32, code, graph, triton_key

NOW_S = 2e9
_HOUR_S, _DAY_S = 3600.0, 86_400.0
_DISK = FileSystem("ext4", 78 << 30, 16_300_000)
_RAM = FileSystem("tmpfs", 11 << 30, 3_000_000)
INDUCTOR = Path("/tmp/torchinductor_me")


def entry(path: str, kind: CacheKind, size: int, files: int, age_s: float, owner_pid: int | None = None) -> Entry:
    return Entry(path, kind, size, files, NOW_S - age_s, 1, 1, owner_pid)


def report(
    place: Place, entries: Sequence[Entry] = (), where: FileSystem = _DISK, exists: bool = True, **more: Any
) -> PlaceReport:
    users = more.pop("users", ())
    return PlaceReport(Contents(place, exists, entries=tuple(entries), **more), where, users)


def found() -> list[PlaceReport]:
    home = Path.home()
    return [
        report(
            Place(INDUCTOR, Family.INDUCTOR, "torch's default, in the temporary folder"),
            [
                *(entry(graph(n), CacheKind.FX_GRAPH, 48 << 10, 3, n * _HOUR_S) for n in range(120)),
                *(entry(f"aotautograd/a{base32(n)}", CacheKind.AOT_AUTOGRAD, 60_000, 2, n * _DAY_S) for n in range(60)),
                *(entry(code(n), CacheKind.CODE, 160 << 10, 1, n * _HOUR_S) for n in range(700)),
                *(entry(f"triton/0/{triton_key(n)}", CacheKind.TRITON, 210 << 10, 9, n * _HOUR_S) for n in range(310)),
                entry(f"precompiled_headers/c{base32(7)}.h.gch", CacheKind.HEADERS, 149 << 20, 1, 40 * _DAY_S),
                *(entry(f"locks/{base32(n)}.lock", CacheKind.LOCKS, 0, 1, n * _HOUR_S) for n in range(90)),
            ],
            _RAM,
            users=(CacheUser(41_234, "python train.py --config large.yaml", Use.CONFIGURED),),
        ),
        report(Place(home / ".triton" / "cache", Family.TRITON, "Triton without Inductor"),
               [entry(triton_key(n), CacheKind.TRITON, 190 << 10, 8, 33 * _DAY_S) for n in range(40)]),
        report(Place(home / ".cache" / "torch" / "kernels", Family.KERNELS, "eager's jiterator"), exists=False),
        report(Place(home / ".torch_inductor_cache", Family.INDUCTOR, "often quoted, but torch never puts it there"),
               exists=False),
        report(Place(Path("/tmp/tct-1000"), Family.PRIVATE, "private caches of this program's runs"), [
            entry("0a1b2c3d", CacheKind.KEPT, 17 << 20, 295, 2 * _DAY_S),
            entry("4e5f6071", CacheKind.KEPT, 3 << 20, 90, 60, owner_pid=51_000),
            entry(f"headers/c{base32(9)[1:]}.h.gch", CacheKind.HEADERS, 149 << 20, 1, 12 * _DAY_S),
        ]),
        report(Place(home / ".local/share/tcompile-tui/runs", Family.RUNS, "records of this program's runs"),
               [entry(f"2026120{n}-101500-net", CacheKind.RUNS, 900 << 10, 6, n * _DAY_S) for n in range(1, 9)]),
    ]  # fmt: skip


def show(monkeypatch: pytest.MonkeyPatch, reports: Callable[[], list[PlaceReport]] = found) -> None:
    """The screens find these caches, at one moment of time."""

    def survey(places: object, progress: Callable[[int], None]) -> Iterator[PlaceReport]:
        progress(1000)
        yield from reports()

    monkeypatch.setattr(caches, "survey", survey)
    for module in (caches, clear_caches):
        monkeypatch.setattr(module.time, "time", lambda: NOW_S)

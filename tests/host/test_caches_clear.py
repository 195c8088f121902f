"""Clearing a cache deletes what was listed and never anything else, whatever lies there and whoever interferes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tcompile_tui.host import cache_clear, machine
from tcompile_tui.host.cache_clear import Choice, Cleared, choose, clear
from tcompile_tui.host.cache_kinds import ASIDE_PREFIX, CacheKind
from tcompile_tui.host.cache_places import Place
from tcompile_tui.host.cache_scan import scan
from tests.host.cache_trees import add_file, add_graph, base32, code, graph, inductor, snapshot

LATER_S = 4e9


def clear_all(place: Place, **options: Any) -> Cleared:
    return clear(choose([scan(place)], Choice(), LATER_S), **options)


@contextmanager
def scene() -> Iterator[tuple[Place, Path]]:
    """An empty cache, and a folder outside it that must not change."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        treasure = root / "treasure"
        add_file(treasure / "thesis.tex", b"years of work")
        add_file(treasure / "inner" / base32(3), b"more")
        add_file(treasure / code(0).partition("/")[2], b"looks like a cache entry")
        yield inductor(root / "cache"), treasure


# ---------------------------------------------------------------- plain


def test_what_was_chosen_goes_and_the_rest_stays(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    add_graph(place.path, 1)
    add_file(place.path / code(1))
    add_file(place.path / "thesis.tex")
    chosen = choose([scan(place)], Choice(kinds=frozenset({CacheKind.FX_GRAPH})), LATER_S)
    cleared = clear(chosen)
    assert (cleared.entries, cleared.files, cleared.failures) == (1, 2, [])
    assert cleared.bytes == chosen[0].bytes > 0
    assert {path.name for path in place.path.iterdir()} == {code(1).partition("/")[0], "thesis.tex"}


def test_a_cache_that_is_in_use_keeps_its_folders(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    entry = add_graph(place.path, 1)
    assert clear_all(place, in_use={place.path}).entries == 1
    assert entry.parent.is_dir() and not entry.exists()


def test_the_place_itself_stays(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    add_graph(place.path, 1)
    clear_all(place)
    assert list(place.path.iterdir()) == []


def test_it_can_be_stopped_between_entries(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    for number in range(200):
        add_file(place.path / code(number))
    cleared = clear_all(place, progress=lambda done: done.entries < 100)
    assert cleared.stopped and cleared.entries == 100
    assert len(scan(place).entries) == 100


def test_a_folder_of_any_depth_and_size_goes(tmp_path: Path) -> None:
    """Deeper than a process may have files open, deeper than recursion goes, longer than a path may be."""
    place = inductor(tmp_path / "i")
    entry = add_graph(place.path, 1)
    folder = os.open(entry, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deeper", dir_fd=folder)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    for number in range(20_000):
        (entry / str(number)).touch()
    cleared = clear_all(place)
    assert cleared.failures == [] and list(place.path.iterdir()) == []


def test_what_a_kill_left_is_cleared_next_time(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    add_file(place.path / f"{ASIDE_PREFIX}0a1b2c3d-0" / "rest")
    (entry,) = scan(place).entries
    assert entry.kind is CacheKind.LEFTOVERS
    assert clear_all(place).entries == 1 and list(place.path.iterdir()) == []


# ---------------------------------------------------------------- hostile trees

_NAMES = st.one_of(
    st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name),
    st.sampled_from([b"fxgraph", b"aotautograd", b"ab", b"cache", b"triton", b"-rf", b"*", b"\n", b"~", b"\xff\xfe"]),
).filter(lambda name: name not in (b".", b".."))
_THINGS = st.lists(
    st.tuples(
        st.sampled_from(["root", "container", "two", "entry"]),
        st.sampled_from(["link", "dir-link", "file", "folder", "fifo"]),
        _NAMES,
    ),
    max_size=12,
)


def _plant(place: Place, treasure: Path, things: list[tuple[str, str, bytes]]) -> None:
    """Two good entries, with things of all sorts in, beside and around them."""
    entry = add_graph(place.path, 1)
    good = add_file(place.path / code(1))
    folders = {"root": place.path, "container": place.path / "fxgraph", "two": good.parent, "entry": entry}
    for where, what, name in things:
        path = os.path.join(os.fsencode(folders[where]), name)  # noqa: PTH118 (names are bytes)
        if os.path.lexists(path):
            continue
        if what == "link":
            os.symlink(treasure / "thesis.tex", path)  # noqa: PTH211
        elif what == "dir-link":
            os.symlink(treasure, path)  # noqa: PTH211
        elif what == "folder":
            os.mkdir(path)  # noqa: PTH102
        elif what == "fifo":
            os.mkfifo(path)
        else:
            Path(os.fsdecode(path)).touch()


@settings(deadline=None)
@given(_THINGS)
def test_nothing_outside_a_hostile_tree_is_touched(things: list[tuple[str, str, bytes]]) -> None:
    with scene() as (place, treasure):
        _plant(place, treasure, things)
        before, outside = snapshot(place.path), snapshot(treasure)
        found = scan(place)
        cleared = clear(choose([found], Choice(), LATER_S))
        assert snapshot(treasure) == outside
        assert cleared.failures == [] and cleared.entries == len(found.entries) == 2
        entries = tuple(os.fsencode(entry.path) for entry in found.entries)
        gone = before.keys() - snapshot(place.path).keys()
        # Gone are the entries, what was in them, and folders that torch makes for them.
        folders = {b"fxgraph", os.fsencode(graph(1).rpartition("/")[0]), os.fsencode(code(1)[:2])}
        assert all(path in folders or path.startswith(entries) for path in gone), gone
        assert all(entry in gone for entry in entries)


def test_names_that_are_links_are_not_entries(tmp_path: Path) -> None:
    with scene() as (place, treasure):
        add_graph(place.path, 1)
        (place.path / "aotautograd").symlink_to(treasure)
        (place.path / code(0)).parent.mkdir()
        (place.path / code(0)).symlink_to(treasure / "thesis.tex")
        found = scan(place)
        assert [entry.path for entry in found.entries] == [graph(1)] and found.stranger_count == 2
        clear(choose([found], Choice(), LATER_S))
        assert (place.path / code(0)).is_symlink() and (place.path / "aotautograd").is_symlink()


# ---------------------------------------------------------------- races

_CALLS = ("open", "stat", "unlink", "rename", "rmdir", "scandir")


class _Saboteur:
    """Swaps a folder for a link to the treasure just before the given call to the system."""

    def __init__(self, at_call: int, victim: Path, treasure: Path) -> None:
        self._left = at_call
        self._victim = victim
        self._treasure = treasure
        self.struck = False

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def sabotaged(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and os.path.lexists(self._victim):
                self._left = -1
                self.struck = True
                os.replace(self._victim, f"{self._victim}.moved")  # noqa: PTH105 (Path.replace is wrapped itself)
                os.symlink(self._treasure, self._victim)  # noqa: PTH211
            return call(*arguments, **named)

        return sabotaged


@contextmanager
def _sabotaged(saboteur: _Saboteur) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, saboteur.wrap(getattr(os, name)))
        yield


_VICTIMS = {
    "root": lambda root: root,
    "container": lambda root: root / "fxgraph",
    "two": lambda root: (root / graph(1)).parent,
    "entry": lambda root: root / graph(1),
    "inner": lambda root: root / graph(1) / "inner",
    "code": lambda root: (root / code(0)).parent,
}


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 60), st.sampled_from(sorted(_VICTIMS)), st.booleans())
def test_a_folder_that_turns_into_a_link_leads_nowhere(at_call: int, victim: str, while_scanning: bool) -> None:
    with scene() as (place, treasure):
        for number in range(3):
            add_graph(place.path, number)
        add_file(place.path / graph(1) / "inner" / "thesis.tex")
        add_file(place.path / code(0))
        outside = snapshot(treasure)
        saboteur = _Saboteur(at_call, _VICTIMS[victim](place.path), treasure)
        if while_scanning:
            with _sabotaged(saboteur):
                found = scan(place)
                clear(choose([found], Choice(), LATER_S))
        else:
            found = scan(place)
            with _sabotaged(saboteur):
                clear(choose([found], Choice(), LATER_S))
        assert snapshot(treasure) == outside


def test_the_saboteur_strikes() -> None:
    """Otherwise the test above would show nothing."""
    with scene() as (place, treasure):
        entry = add_graph(place.path, 1)
        found = scan(place)
        saboteur = _Saboteur(1, entry, treasure)
        with _sabotaged(saboteur):
            cleared = clear(choose([found], Choice(), LATER_S))
        assert saboteur.struck
        assert cleared.entries == 0 and "changed since it was listed" in cleared.failures[0].reason
        assert entry.is_symlink()


def test_a_place_that_was_replaced_is_left(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    add_graph(place.path, 1)
    chosen = choose([scan(place)], Choice(), LATER_S)
    place.path.rename(tmp_path / "old")
    entry = add_graph(place.path, 1)
    cleared = clear(chosen)
    assert cleared.entries == 0 and "changed since it was listed" in cleared.failures[0].reason and entry.exists()


def test_an_entry_written_anew_since_it_was_listed_is_left(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    path = add_file(place.path / code(1))
    chosen = choose([scan(place)], Choice(), LATER_S)
    add_file(tmp_path / "new", b"new").replace(path)
    cleared = clear(chosen)
    assert [failure.path for failure in cleared.failures] == [str(path)] and path.read_bytes() == b"new"


def test_what_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    path = add_file(place.path / code(1))
    add_graph(place.path, 1)
    chosen = choose([scan(place)], Choice(), LATER_S)
    path.unlink()
    path.parent.rmdir()
    assert clear(chosen).failures == [] and list(place.path.iterdir()) == []


# ---------------------------------------------------------------- no permission, other file systems


def test_files_that_cannot_be_deleted_are_listed_and_the_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = inductor(tmp_path / "i")
    for number in range(3):
        add_graph(place.path, number)
    add_file(place.path / graph(1) / "stubborn")
    unlink = os.unlink

    def refuse(name: str, **named: Any) -> None:
        if name == "stubborn":
            raise PermissionError(13, "Permission denied")
        unlink(name, **named)

    monkeypatch.setattr(os, "unlink", refuse)
    cleared = clear_all(place)
    assert cleared.entries == 2
    ((path, reason),) = [(failure.path, failure.reason) for failure in cleared.failures]
    assert path == str(place.path / graph(1) / "stubborn") and reason.startswith("Permission denied; now in ")
    assert Path(reason.rpartition("now in ")[2], "stubborn").exists()
    monkeypatch.setattr(os, "unlink", unlink)
    assert [entry.kind for entry in scan(place).entries] == [CacheKind.LEFTOVERS]


@pytest.mark.skipif(os.getuid() != 0, reason="needs a user whom permissions bind, and one to prepare them")
def test_folders_without_permission_stay_whole() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        root.chmod(0o755)
        place = inductor(root / "i")
        locked = add_graph(place.path, 1)
        add_graph(place.path, 2)
        hidden = add_graph(place.path, 3)
        for folder, folders, files in os.walk(place.path):
            for path in (folder, *(f"{folder}/{inner}" for inner in folders + files)):
                os.chown(path, 65534, 65534)
        locked.chmod(0o555)
        hidden.chmod(0o000)
        os.seteuid(65534)
        try:
            found = scan(place)
            cleared = clear(choose([found], Choice(), LATER_S))
        finally:
            os.seteuid(0)
        assert [failure.path for failure in found.failures] == [graph(3)]
        assert [failure.path for failure in cleared.failures] == [str(locked)]
        assert cleared.entries == 1 and len(list(locked.iterdir())) == 1


@pytest.mark.parametrize("where", ["entry", "inside", "container"])
def test_a_mount_point_is_not_crossed(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bind mount of the same file system has the same device: only the mount table tells."""
    place = inductor(tmp_path / "i")
    entry = add_graph(place.path, 1)
    mounts = {"entry": entry, "inside": entry / "mounted", "container": entry.parent}
    chosen = choose([scan(place)], Choice(), LATER_S)
    monkeypatch.setattr(machine, "mount_points_below", lambda path: [mounts[where]])
    cleared = clear(chosen)
    assert cleared.entries == 0 and "mounted" in cleared.failures[0].reason
    assert len(list(entry.iterdir())) == 1


def test_a_real_mount_is_not_crossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted between the look at the mount table and the deletion."""
    place = inductor(tmp_path / "i")
    inner = add_graph(place.path, 1) / "inner"
    inner.mkdir()
    outside = add_file(tmp_path / "treasure" / "thesis.tex").parent
    chosen = choose([scan(place)], Choice(), LATER_S)
    if subprocess.run(["mount", "--bind", outside, inner], capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        monkeypatch.setattr(cache_clear.machine, "mount_points_below", lambda path: [])
        cleared = clear(chosen)
        assert [path.name for path in outside.iterdir()] == ["thesis.tex"] and cleared.entries == 0
    finally:
        for path in place.path.rglob("inner"):
            subprocess.run(["umount", path], capture_output=True, check=False)

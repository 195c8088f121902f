"""Caches: where they are looked for, what is recognised, what is counted, what is chosen."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from tcompile_tui.host import cache_places, cache_scan
from tcompile_tui.host.cache_clear import Choice, choose, clear
from tcompile_tui.host.cache_kinds import COMPILE_KINDS, CacheKind, Family, is_inside, kind_of
from tcompile_tui.host.cache_places import (
    Place,
    PlaceError,
    all_places,
    parse_environment,
    places_of,
    process_environment,
    recognise,
)
from tcompile_tui.host.cache_scan import CancelledError, Contents, Entry, scan
from tcompile_tui.host.cache_users import Use, users_of
from tcompile_tui.host.caches import caches_document, entries_of_run, survey
from tcompile_tui.host.run_folder import ProcessId
from tests.host.cache_trees import RECORDED, add_file, add_graph, base32, code, graph, inductor, triton_key

DEAD = ProcessId(ProcessId.own().host, ProcessId.own().boot_id, 2**22 - 1, 1.0)

# ---------------------------------------------------------------- layout


def test_everything_that_torch_wrote_is_recognised() -> None:
    """The recording is a cache that torch 2.13 left after two models on a CPU."""
    found: dict[CacheKind, int] = {}
    entries: list[str] = []
    for line in RECORDED.read_text().splitlines():
        path = line.rstrip("/")
        if any(path.startswith(f"{entry}/") for entry in entries):
            continue
        kind = kind_of(Family.INDUCTOR, path)
        if kind is None:
            assert line.endswith("/") and is_inside(Family.INDUCTOR, path), line
        else:
            entries.append(path)
            found[kind] = found.get(kind, 0) + 1
    assert found == {
        CacheKind.FX_GRAPH: 5, CacheKind.AOT_AUTOGRAD: 3, CacheKind.CODE: 29, CacheKind.PGO: 2,
        CacheKind.HEADERS: 3, CacheKind.LOCKS: 12,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("family", "path", "kind"),
    [
        (Family.INDUCTOR, f"triton/0/{triton_key(1)}", CacheKind.TRITON),
        (Family.INDUCTOR, f"triton/{triton_key(1)}", CacheKind.TRITON),
        (Family.INDUCTOR, f"ab/{'0123456789abcdef' * 4}.best_config", CacheKind.AUTOTUNE),
        (Family.INDUCTOR, f"cache/{'0123456789abcdef' * 4}", CacheKind.AUTOTUNE),
        (Family.TRITON, triton_key(1), CacheKind.TRITON),
        (Family.TRITON, "0123456789abcdef" * 4, CacheKind.TRITON),
        (Family.KERNELS, "add_kernel_arch9.0_nvrtc12.4_sass_4242_1234567890", CacheKind.KERNELS),
        (Family.PRIVATE, "0a1b2c3d", CacheKind.KEPT),
        (Family.INDUCTOR, ".tcompile-tui-trash-0a1b2c3d-12", CacheKind.LEFTOVERS),
    ],
)
def test_a_name_of_the_right_shape_is_an_entry(family: Family, path: str, kind: CacheKind) -> None:
    assert kind_of(family, path) is kind


@pytest.mark.parametrize(
    ("family", "path"),
    [
        (Family.INDUCTOR, "notes.txt"),
        (Family.INDUCTOR, "go/main.go"),
        (Family.INDUCTOR, f"zz/{code(1).partition('/')[2]}"),
        (Family.INDUCTOR, "fxgraph/ab/thesis"),
        (Family.INDUCTOR, "cache/pip"),
        (Family.INDUCTOR, f"{graph(1)}/inner"),
        (Family.INDUCTOR, "dynamo/model.py"),
        (Family.TRITON, "my_kernels"),
        (Family.TRITON, "checkpoint-of-the-model-that-took-a-week-abc"),
        (Family.KERNELS, "hub"),
        (Family.PRIVATE, "photos"),
        (Family.INDUCTOR, ""),
    ],
)
def test_any_other_name_is_none(family: Family, path: str) -> None:
    assert kind_of(family, path) is None


@given(st.text(max_size=80))
def test_text_of_any_kind_is_no_cache_entry(path: str) -> None:
    for family in (Family.INDUCTOR, Family.TRITON, Family.KERNELS, Family.HEADERS):
        assert kind_of(family, path) is None


# ---------------------------------------------------------------- places


def _by_family(places: list[Place], family: Family) -> list[Path]:
    return [place.path for place in places if place.family is family]


def test_defaults_are_torchs_own(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path), "USER": "jo/e", "LOGNAME": ""}
    places = places_of(environment)
    assert _by_family(places, Family.INDUCTOR) == [
        tmp_path / "torchinductor_jo_e",
        tmp_path / "home" / ".torch_inductor_cache",
    ]
    assert "never" in places[-1].why
    assert _by_family(places, Family.TRITON) == [tmp_path / "home" / ".triton" / "cache"]
    assert _by_family(places, Family.KERNELS) == [tmp_path / "home" / ".cache" / "torch" / "kernels"]


def test_the_default_folder_is_the_one_that_torch_names() -> None:
    """Against torch's own function, in a process of its own."""
    program = "from torch._inductor.runtime.cache_dir_utils import default_cache_dir; print(default_cache_dir())"
    pytest.importorskip("torch")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(said).resolve() in _by_family(places_of(os.environ), Family.INDUCTOR)


def test_variables_move_them_but_not_the_headers(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "USER": "joe", "TRITON_HOME": str(tmp_path / "th"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "i"), "TRITON_CACHE_DIR": str(tmp_path / "t"),
        "PYTORCH_KERNEL_CACHE_PATH": str(tmp_path / "k"),
    }  # fmt: skip
    places = places_of(environment)
    assert _by_family(places, Family.INDUCTOR)[:2] == [tmp_path / "i", tmp_path / "torchinductor_joe"]
    assert "headers" in places[1].why
    assert _by_family(places, Family.TRITON) == [tmp_path / "t", tmp_path / "th" / ".triton" / "cache"]
    assert _by_family(places, Family.KERNELS) == [tmp_path / "k"]


def test_a_place_inside_another_one_counts_once(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path / "h"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "i"),
        "TRITON_CACHE_DIR": str(tmp_path / "i" / "triton"),
    }  # fmt: skip
    assert tmp_path / "i" / "triton" not in _by_family(places_of(environment), Family.TRITON)
    # In a home folder Inductor's layout does not lead to Triton's own place, so both are looked at.
    environment = {"HOME": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    assert tmp_path / ".triton" / "cache" in _by_family(places_of(environment), Family.TRITON)


def test_another_process_says_where_its_caches_are(tmp_path: Path) -> None:
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "moved")}
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment)
    try:
        places = all_places(os.environ, pids=[process.pid])
        assert [p.why for p in places if p.path == tmp_path / "moved"] == [
            f"$TORCHINDUCTOR_CACHE_DIR (process {process.pid})"
        ]
    finally:
        process.communicate(b"\n")
    with pytest.raises(PlaceError, match=f"no process {2**22 - 1}"):
        process_environment(2**22 - 1)


@given(st.dictionaries(st.text(st.characters(exclude_characters="=\0", codec="utf-8"), min_size=1), st.text(st.characters(exclude_characters="\0", codec="utf-8"))))  # fmt: skip # noqa: E501
def test_an_environment_is_read_back(environment: dict[str, str]) -> None:
    content = b"\0".join(f"{name}={value}".encode() for name, value in environment.items())
    assert parse_environment(content + b"\0") == environment


def test_a_folder_is_recognised_by_what_is_in_it(tmp_path: Path) -> None:
    add_file(tmp_path / "a" / code(1))
    add_file(tmp_path / "b" / triton_key(1) / "kernel.cubin")
    add_file(tmp_path / "torchinductor_me" / "thesis.tex")
    assert recognise(tmp_path / "a").family is Family.INDUCTOR
    assert recognise(tmp_path / "b").family is Family.TRITON
    for name, words in [("torchinductor_me", "looks like a compile cache"), ("none", "no such folder")]:
        with pytest.raises(PlaceError, match=words):
            recognise(tmp_path / name)


def test_a_link_is_no_place_to_clear(tmp_path: Path) -> None:
    add_graph(tmp_path / "real", 1)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = scan(Place(tmp_path / "link", Family.INDUCTOR, ""))
    assert found.entries == () and str(tmp_path / "real") in (found.problem or "")
    with pytest.raises(PlaceError, match="symlink"):
        recognise(tmp_path / "link")


def test_a_folder_of_someone_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_graph(tmp_path, 1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = scan(Place(tmp_path, Family.INDUCTOR, ""))
    assert "belongs to" in (found.problem or "") and found.entries == ()


@pytest.mark.parametrize(
    ("kind", "memory", "network"), [("tmpfs", True, False), ("nfs4", False, True), ("ext4", False, False)]
)
def test_what_the_file_system_means(
    kind: str, memory: bool, network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_places.machine, "filesystem_type", lambda path: kind)
    facts = cache_places.file_system(tmp_path / "not" / "there")
    assert (facts.is_memory, facts.is_network) == (memory, network) and facts.free_bytes


# ---------------------------------------------------------------- counting


def test_a_scan_counts_bytes_files_and_age_by_kind(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    add_graph(place.path, 1, age_s=50, content=b"x" * 10_000)
    add_file(place.path / graph(1) / "second", age_s=20)
    add_file(place.path / code(1), age_s=10)
    add_file(place.path / "thesis.tex")
    (report,) = survey([place])
    totals = {total.kind: total for total in report.kinds}
    assert (totals[CacheKind.FX_GRAPH].entries, totals[CacheKind.FX_GRAPH].files) == (1, 3)  # the folder is an inode
    assert totals[CacheKind.FX_GRAPH].newest_s == 2e9 - 20
    assert totals[CacheKind.CODE].newest_s == 2e9 - 10
    assert report.bytes >= 10_000 and report.files == 4
    assert report.contents.strangers == ("thesis.tex",)


def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    found = scan(Place(tmp_path / "none", Family.INDUCTOR, ""))
    assert not found.exists and found.problem is None and found.entries == ()


def test_a_scan_can_be_ended(tmp_path: Path) -> None:
    place = inductor(tmp_path)
    folder = place.path / graph(1)
    folder.mkdir(parents=True)
    for number in range(2500):
        (folder / str(number)).touch()

    def stop(files: int) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        scan(place, stop)
    seen: list[int] = []
    scan(place, seen.append)
    assert sum(seen) == 2000


def test_another_file_system_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = inductor(tmp_path / "i")
    add_graph(place.path, 1)
    mounted = add_graph(place.path, 2).parent
    monkeypatch.setattr(cache_scan.machine, "mount_points_below", lambda path: [mounted])
    found = scan(place)
    assert [entry.path for entry in found.entries] == [graph(1)]
    assert "mounted" in found.failures[0].reason and found.failures[0].path in graph(2)


def _private_root(base: Path, name: str, owner: ProcessId) -> Path:
    add_graph(base / name / "i", 1)
    add_file(base / name / "owner.json", msgspec.json.encode(owner))
    return base / name


def test_a_private_root_is_known_by_its_owner(tmp_path: Path) -> None:
    _private_root(tmp_path, "00000001", DEAD)
    _private_root(tmp_path, "00000002", ProcessId.own())
    add_file(tmp_path / "00000003" / "thesis.tex")
    found = scan(Place(tmp_path, Family.PRIVATE, ""))
    assert {entry.path: entry.owner_pid for entry in found.entries} == {"00000001": None, "00000002": os.getpid()}
    assert found.strangers == ("00000003",)
    assert entries_of_run([found], DEAD) == {tmp_path / "00000001"}
    (chosen,) = choose([found], Choice(), 2e9)
    assert [entry.path for entry in chosen.entries] == ["00000001"]


def test_headers_that_living_runs_share_have_users(tmp_path: Path) -> None:
    _private_root(tmp_path, "00000001", DEAD)
    _private_root(tmp_path, "00000002", ProcessId.own())
    add_file(tmp_path / "headers" / "0123abcd" / f"c{base32(1)[1:]}.h.gch")
    (report,) = survey([Place(tmp_path, Family.PRIVATE, "")])
    headers = [entry for entry in report.contents.entries if entry.kind is CacheKind.HEADERS]
    assert [user.pid for user in report.users_of(headers)] == [os.getpid()]
    assert report.users_of(entry for entry in report.contents.entries if entry.kind is CacheKind.KEPT) == ()
    clear(choose([report.contents], Choice(), 4e9))
    # The runs link to the folder of headers.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000002", "headers"]


def test_who_has_files_open_is_a_user(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    entry = add_graph(place.path, 1)
    program = f"import mmap\nf = open({str(next(entry.iterdir()))!r}, 'rb')\nprint(flush=True)\ninput()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        ((user,),) = users_of([place, inductor(tmp_path / "other")]).values()
        assert (user.pid, user.use) == (process.pid, Use.OPEN) and "import mmap" in user.command
    finally:
        process.communicate(b"\n")
    assert users_of([place]) == {}


def test_who_has_torch_mapped_and_would_compile_here_is_a_user(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    library = add_file(tmp_path / "torch" / "lib" / "libtorch_cpu.so", b"x" * mmap.PAGESIZE)
    program = (
        f"import mmap\nf = open({str(library)!r}, 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
        "f.close()\nprint(flush=True)\ninput()"
    )
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(place.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        (user,) = users_of([place])[place.path]
        assert (user.pid, user.use) == (process.pid, Use.CONFIGURED)
    finally:
        process.communicate(b"\n")


def test_the_document_is_json_whatever_the_names(tmp_path: Path) -> None:
    place = inductor(tmp_path / "i")
    os.mkdir(os.fsencode(place.path) + b"/st\xffrange")  # noqa: PTH102 (a name of bytes)
    add_graph(place.path, 1)
    document = caches_document(survey([place]))
    (told,) = json.loads(msgspec.json.encode(document))["places"]
    assert told["kinds"]["fx-graph"]["entries"] == 1 and told["not_entries"] == 1
    assert told["inodes"] == 2 and told["exists"] and told["used_by"] == []


# ---------------------------------------------------------------- choosing

_ENTRIES = st.lists(
    st.builds(
        Entry, path=st.integers(0, 10**6).map(graph), kind=st.sampled_from(list(CacheKind)),
        bytes=st.integers(0, 1000), files=st.integers(1, 9), modified_s=st.floats(0, 1000),
        device=st.just(1), inode=st.integers(1, 10**6), owner_pid=st.none() | st.just(7),
    ),
    unique_by=lambda entry: entry.path,
)  # fmt: skip


def _contents(entries: list[Entry]) -> Contents:
    return Contents(Place(Path("/c"), Family.INDUCTOR, ""), True, entries=tuple(entries))


def _going(entries: list[Entry], choice: Choice, now_s: float = 1000.0) -> set[str]:
    return {entry.path for part in choose([_contents(entries)], choice, now_s) for entry in part.entries}


@given(_ENTRIES)
def test_everything_means_caches_and_nothing_alive(entries: list[Entry]) -> None:
    assert _going(entries, Choice()) == {e.path for e in entries if not e.is_live and e.kind is not CacheKind.RUNS}


@given(_ENTRIES, st.sampled_from(list(CacheKind)), st.floats(0, 1000))
def test_kind_and_age_both_have_to_hold(entries: list[Entry], kind: CacheKind, age_s: float) -> None:
    going = _going(entries, Choice(kinds=frozenset({kind}), older_than_s=age_s))
    assert going == {e.path for e in entries if e.kind is kind and not e.is_live and e.modified_s < 1000 - age_s}


@given(_ENTRIES, st.integers(0, 5000))
def test_down_to_a_size_keeps_the_newest_that_fit(entries: list[Entry], size: int) -> None:
    going = _going(entries, Choice(down_to_bytes=size))
    candidates = [e for e in entries if not e.is_live and e.kind in COMPILE_KINDS]
    kept = [e for e in candidates if e.path not in going]
    assert sum(e.bytes for e in kept) <= size
    gone = [e for e in candidates if e.path in going]
    if gone:
        newest_gone = max(gone, key=lambda e: e.modified_s)
        assert all(e.modified_s >= newest_gone.modified_s for e in kept)
        assert sum(e.bytes for e in kept) + max(e.bytes for e in gone) > size


def test_one_place_or_some_entries_only(tmp_path: Path) -> None:
    found = [scan(inductor(tmp_path / name)) for name in ("a", "b")]
    for name in ("a", "b"):
        add_graph(tmp_path / name, 1)
        add_graph(tmp_path / name, 2)
    found = [scan(inductor(tmp_path / name)) for name in ("a", "b")]
    (part,) = choose(found, Choice(places=frozenset({tmp_path / "b"})), 3e9)
    assert part.contents.place.path == tmp_path / "b" and part.files == 4
    (part,) = choose(found, Choice(paths=frozenset({tmp_path / "a" / graph(2)})), 3e9)
    assert [entry.path for entry in part.entries] == [graph(2)]

"""`tcompile-tui caches`: what it lists, what it deletes, and when it asks or refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tcompile_tui.cli_caches import KINDS
from tcompile_tui.host.cache_kinds import CacheKind
from tcompile_tui.host.run_folder import ProcessId
from tests.host.cache_trees import add_file, add_graph, code, graph
from tests.ui.recorded import write_run


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only cache that the program can find, with two graphs and a file of code in it."""
    for name, value in {
        "HOME": tmp_path / "home", "TMPDIR": tmp_path / "tmp", "TORCHINDUCTOR_CACHE_DIR": tmp_path / "i",
        "TCOMPILE_TUI_PRIVATE_DIR": tmp_path / "private",
        "TCOMPILE_TUI_HEADERS_DIR": tmp_path / "headers", "TRITON_CACHE_DIR": tmp_path / "t",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    (tmp_path / "tmp").mkdir()
    add_graph(tmp_path / "i", 1, age_s=0, content=b"x" * 100_000)
    add_graph(tmp_path / "i", 2, age_s=1e9, content=b"x" * 100_000)
    add_file(tmp_path / "i" / code(1))
    return tmp_path / "i"


def caches(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tcompile_tui", "caches", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


def test_the_list_has_place_size_files_and_what_is_not_there(cache: Path) -> None:
    result = caches()
    assert result.returncode == 0 and result.stderr == ""
    for part in (
        f"Inductor  {cache}  ($TORCHINDUCTOR_CACHE_DIR)", "FX graphs", "generated code", "KiB", "4 files", "free",
        "often quoted, but torch never puts it there", "torch.compiler.reset()",
    ):  # fmt: skip
        assert part in result.stdout, part


def test_json_has_the_same(cache: Path) -> None:
    document = json.loads(caches("--json").stdout)
    (place,) = [place for place in document["places"] if place["path"] == str(cache)]
    assert place["kinds"]["fx-graph"]["entries"] == 2 and place["inodes"] == 5 and place["bytes"] > 200_000
    assert document["in_memory"][0]["line"] == "torch.compiler.reset()"


def test_every_kind_can_be_named() -> None:
    assert set(KINDS) == {kind.value for kind in CacheKind}


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--all"], {graph(1), graph(2), code(1)}),
        (["--kind", "code"], {code(1)}),
        (["--kind", "fx-graph", "--older-than", "0"], {graph(1), graph(2)}),
        (["--down-to", "150k", "--kind", "fx-graph"], {graph(2)}),
        (["--dir", "."], {graph(1), graph(2), code(1)}),
    ],
)
def test_what_is_asked_for_goes(
    options: list[str], gone: set[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cache)
    os.utime(cache / code(1), (1e9, 1e9))
    for number in (1, 2):
        for file in (cache / graph(number)).iterdir():
            os.utime(file, (1e9 - number, 1e9 - number))
    paths = {path: cache / path for path in (graph(1), graph(2), code(1))}
    dry = caches("clear", *options, "--dry-run")
    assert {path for path, full in paths.items() if str(full) in dry.stdout} == gone and "would go" in dry.stdout
    assert all(full.exists() for full in paths.values())
    result = caches("clear", *options, "--yes")
    assert result.returncode == 0 and "deleted" in result.stdout, result.stderr
    assert {path for path, full in paths.items() if not full.exists()} == gone


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["say what to clear", "--all"]),
        (["--all"], ["no terminal to ask", "--yes"]),
        (["--run", "nowhere", "--yes"], ["nowhere", "tcompile-tui runs"]),
        (["--dir", "/etc", "--yes"], ["/etc", "looks like a compile cache"]),
        (["--pid", str(2**22 - 1), "--all"], ["no process"]),
    ],
)
def test_a_mistake_is_one_line_and_deletes_nothing(options: list[str], words: list[str], cache: Path) -> None:
    result = caches("clear", *options)
    line = result.stderr.splitlines()[-1]
    assert result.returncode == 2 and line.startswith("error: ") and all(word in line for word in words), line
    assert (cache / graph(1)).exists() and (cache / code(1)).exists()


def test_a_size_that_is_none_is_told(cache: Path) -> None:
    result = caches("clear", "--down-to", "much")
    assert result.returncode == 2 and "'much' is no size" in result.stderr


def test_what_a_process_uses_stays_unless_it_is_meant(cache: Path) -> None:
    file = next((cache / graph(1)).iterdir())
    program = f"f = open({str(file)!r})\nprint(flush=True)\ninput()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        result = caches("clear", "--all", "--yes")
        assert f"in use by 1 process ({process.pid})" in result.stderr and "--in-use" in result.stderr
        assert result.returncode == 0 and file.exists()
        result = caches("clear", "--all", "--yes", "--in-use")
        assert "it may fail, or compile again" in result.stderr and not file.exists()
    finally:
        process.communicate(b"\n")


def test_what_could_not_be_deleted_is_listed_with_status_6(cache: Path) -> None:
    """A mount point in the middle of the cache; without the right to mount there is nothing to see."""
    inner = cache / graph(1) / "inner"
    inner.mkdir()
    if subprocess.run(["mount", "--bind", cache.parent / "tmp", inner], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        result = caches("clear", "--all", "--yes")
        assert result.returncode == 6 and "mounted there" in result.stderr and inner.exists()
        assert not (cache / graph(2)).exists()
    finally:
        subprocess.run(["umount", inner], check=True)


def test_one_runs_own_caches(cache: Path, tmp_path: Path) -> None:
    dead = json.loads(msgspec.json.encode(ProcessId.own())) | {"pid": 2**22 - 1, "started_at": 1.0}
    run = write_run(tmp_path / "run", [], supervisor=dead)
    assert "left no caches" in caches("clear", "--run", str(run.path), "--yes").stdout
    roots = [tmp_path / "private" / name for name in ("f0f0f0f0", "a1a1a1a1")]
    for root, owner in zip(roots, (dead, dead | {"pid": 2**22 - 2}), strict=True):
        add_graph(root / "i", 1)
        add_file(root / "owner.json", json.dumps(owner).encode())
    result = caches("clear", "--run", str(run.path), "--yes")
    assert result.returncode == 0 and (cache / graph(1)).exists()
    assert [root.exists() for root in roots] == [False, True]


def test_help_is_quick_to_load() -> None:
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom tcompile_tui.cli import main\n"
        "for words in (['caches', '--help'], ['caches', 'clear', '--help']):\n"
        "    assert CliRunner().invoke(main, words).exit_code == 0\n"
        "print([name for name in ('torch', 'textual', 'psutil', 'msgspec') if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

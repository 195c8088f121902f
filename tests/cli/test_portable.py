"""`tcompile-tui caches --export` and `--import`, with the scripted worker in place of torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.fake_run import fake_python


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "x.gch").touch()
    monkeypatch.setenv("TCOMPILE_TUI_HEADERS_DIR", str(tmp_path / "headers"))
    path = tmp_path / "net.py"
    path.write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n")
    return path


def caches(model: Path, *arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
    python = fake_python(model.parent)
    command = [sys.executable, "-m", "tcompile_tui", "caches", *arguments, "--of", "net.py", "--python", str(python)]
    return subprocess.run(
        command, cwd=model.parent, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "SCRIPT": script}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_an_export_is_proved_by_a_start_from_the_file(model: Path) -> None:
    done = caches(model, "--export", "net.ptcache")
    assert done.returncode == 0, done.stderr
    cold, wrote, warm, saved, *rest = done.stdout.splitlines()
    assert cold.startswith("cold start") and "0 cache hits, 1 miss" in cold
    assert wrote.startswith("wrote") and wrote.endswith("2 inductor")
    assert warm.startswith("start from the file") and "1 cache hit, 0 misses" in warm and "to load the file" in warm
    assert saved.startswith("saved by the file")
    assert "  torch.compiler.load_cache_artifacts(open('net.ptcache', 'rb').read())" in rest
    assert (model.parent / "net.ptcache").read_bytes() == b"artifacts"

    again = caches(model, "--export", "net.ptcache")
    assert again.returncode == 2 and "exists already" in again.stderr

    back = caches(model, "--import", "net.ptcache", "--mode", "reduce-overhead")
    assert back.returncode == 0, back.stderr
    assert [line.split("  ")[0] for line in back.stdout.splitlines()[:2]] == ["start from the file", "cold start"]
    assert "reduce-overhead" in back.stderr


def test_a_file_that_does_not_fit_is_said_to(model: Path) -> None:
    (model.parent / "other").write_bytes(b"of another model")
    done = caches(model, "--import", "other")
    assert done.returncode == 6 and "nothing in other fits this model here" in done.stderr


def test_a_model_that_fails_is_one_line(model: Path) -> None:
    done = caches(model, "--export", "net.ptcache", script="fails")
    assert done.returncode == 6 and done.stderr.splitlines()[-1] == "error: Unsupported: no"
    assert not (model.parent / "net.ptcache").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--export", "x"], "say whose caches"),
        (["--export", "x", "--import", "y", "--of", "net.py"], "not both"),
        (["--import", "nowhere", "--of", "net.py"], "nowhere is no file"),
        (["--export", "x", "--of", "nowhere.py"], "nowhere.py"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(model: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "tcompile_tui", "caches", *arguments]
    done = subprocess.run(command, cwd=model.parent, capture_output=True, text=True, timeout=60, check=False)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("error: ") and words in line

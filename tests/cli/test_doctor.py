"""`tcompile-tui doctor` on this machine, as it is and with something broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tcompile_tui", "doctor", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TORCH")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**clean, **environment}
    )


def test_it_tells_what_is_here() -> None:
    result = doctor()
    assert result.returncode == 0, result.stdout
    for name in ("torch", "GPU", "Triton", "C++", "environment", "disk", "host"):
        assert any(line[4:].startswith(f"{name} ") for line in result.stdout.splitlines()), name


def test_what_is_broken_has_its_fix_and_status_4() -> None:
    result = doctor(TORCHDYNAMO_DISABLE="1", CXX="/nowhere/g++")
    assert result.returncode == 4 and "cannot work here" in result.stdout
    assert "fix: unset TORCHDYNAMO_DISABLE" in result.stdout and "apt install g++" in result.stdout


def test_json_has_the_same() -> None:
    result = doctor("--json", TORCH_COMPILE_DISABLE="1")
    document = json.loads(result.stdout)
    assert document["can_compile"] is False and result.returncode == 4
    (blocker,) = [check for check in document["checks"] if check["level"] == "blocker"]
    assert blocker["name"] == "environment" and blocker["fix"] == "unset TORCH_COMPILE_DISABLE"

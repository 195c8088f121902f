"""What keeps torch.compile from working, or spoils a measurement, is named with its fix; the rest is fine."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tcompile_tui.host import preflight
from tcompile_tui.host.cache_places import FileSystem
from tcompile_tui.host.check import Check, Level
from tcompile_tui.host.gpu import GpuInfo, Gpus, GpuTraits
from tcompile_tui.host.gpu_checks import GpuLook, gpu_checks
from tcompile_tui.host.preflight import cpp_compiler, examine, room, switches
from tests.host.test_gpu import FIRST, FakeNvml, two_gpus

INCLUDE = Path(sysconfig.get_paths()["include"])
H200 = GpuLook(
    GpuInfo(0, FIRST, "NVIDIA H200", 140 << 30, 0, 0.0, "580.1", persistence=True), 8,
    GpuTraits((9, 0), 132, 1980.0, (13, 0)), (), 0.0, 1980.0, (),
)  # fmt: skip


def amiss(checks: Iterable[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.level is not Level.FINE}


# ---------------------------------------------------------------- GPU


def test_a_good_gpu_is_fine() -> None:
    checks = list(gpu_checks(H200, "12.8"))
    assert amiss(checks) == {}
    text = "\n".join(check.text for check in checks)
    assert "NVIDIA H200, 140 GiB, driver 580.1 (CUDA 13.0)" in text and "132" in text and "1,980 of 1,980 MHz" in text


@pytest.mark.parametrize(
    ("traits", "cuda", "name", "level", "words"),
    [
        (GpuTraits((9, 0), 132, None, (12, 4)), "13.0", "CUDA", Level.BLOCKER, "CUDA 13.0, the driver knows 12.4"),
        (GpuTraits((6, 1), 80, None, (12, 4)), "12.4", "CUDA", Level.BLOCKER, "capability 6.1"),
        (GpuTraits((8, 9), 46, None, (12, 4)), "12.4", "SMs", Level.NOTE, "46 of the 68"),
        (GpuTraits((9, 0), 132, None, (12, 4)), None, "CUDA", Level.WARNING, "cannot use the GPU"),
    ],
)
def test_what_does_not_fit_is_named(traits: GpuTraits, cuda: str | None, name: str, level: Level, words: str) -> None:
    found = amiss(gpu_checks(replace(H200, traits=traits), cuda))
    assert list(found) == [name] and found[name].level is level and words in found[name].text and found[name].fix


def test_a_newer_minor_version_of_cuda_fits() -> None:
    assert amiss(gpu_checks(replace(H200, traits=GpuTraits((9, 0), 132, None, (12, 4))), "12.8")) == {}


def test_what_is_not_known_is_no_fault() -> None:
    found = amiss(gpu_checks(GpuLook(GpuInfo(0, FIRST, "NVIDIA H200"), 1, GpuTraits()), "12.8"))
    assert list(found) == ["GPU use"] and "cannot be seen" in found["GPU use"].text


@pytest.mark.parametrize(
    ("change", "name", "level"),
    [
        ({"others": (17,), "utilisation_percent": 80.0}, "GPU use", Level.WARNING),
        ({"others": (17,), "utilisation_percent": 0.0}, "GPU use", Level.NOTE),
        ({"throttle_reasons": ("power cap", "hardware thermal slowdown")}, "clocks", Level.WARNING),
    ],
)
def test_what_disturbs_is_named(change: dict[str, Any], name: str, level: Level) -> None:
    found = amiss(gpu_checks(replace(H200, **change), "12.8"))
    assert list(found) == [name] and found[name].level is level


def test_mig_and_persistence_are_noted() -> None:
    assert H200.info is not None
    found = amiss(gpu_checks(replace(H200, info=replace(H200.info, mig=True, persistence=False)), "12.8"))
    assert list(found) == ["MIG", "persistence"]


def test_hidden_gpus_are_told_from_none() -> None:
    assert "hides all of 8 GPUs" in amiss(gpu_checks(replace(H200, info=None), "12.8"))["GPU"].text
    none = GpuLook(None, 0, GpuTraits())
    assert amiss(gpu_checks(none, "12.8"))["GPU"].level is Level.NOTE and amiss(gpu_checks(none, None)) == {}


@pytest.mark.parametrize(
    ("capability", "cores", "sms"), [((9, 0), 16_896, 132), ((8, 0), 6912, 108), ((8, 9), 9728, 76), ((7, 5), 2560, 40)]
)
def test_multiprocessors_are_counted(
    capability: tuple[int, int], cores: int, sms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H200, A100, RTX 4080 and T4, by their data sheets."""
    fake = FakeNvml(
        **two_gpus(),
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetCudaComputeCapability=lambda handle: capability,
        nvmlDeviceGetNumGpuCores=lambda handle: cores,
        nvmlSystemGetCudaDriverVersion_v2=lambda: 12_040,
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: 1980,
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Gpus() as gpus:
        traits = gpus.traits(gpus.list_gpus()[0])
    assert traits == GpuTraits(capability, sms, 1980.0, (12, 4)) and fake.misused == []


def test_a_mig_instance_has_multiprocessors_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml(
        **two_gpus(),
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetAttributes_v2=lambda handle: SimpleNamespace(multiprocessorCount=16),
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with Gpus() as gpus:
        assert gpus.traits(GpuInfo(0, "MIG-1", "H200 MIG 1g.18gb", mig=True)) == GpuTraits(sm_count=16)


def test_a_driver_that_never_answers_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(preflight, "look_at_gpu", lambda environment: forever.wait())
    monkeypatch.setattr(preflight, "_DRIVER_TIMEOUT_S", 0.05)
    found = amiss(examine({"PATH": "/usr/bin:/bin"}, sys.executable))
    forever.set()
    assert found["GPU"].level is Level.BLOCKER and "did not answer" in found["GPU"].text


# ---------------------------------------------------------------- compiler


def _compiler(folder: Path, script: str) -> dict[str, str]:
    path = folder / "cxx"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"CXX": str(path), "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}


def test_a_real_compiler_is_tried(tmp_path: Path) -> None:
    if subprocess.run(["which", "g++"], capture_output=True, check=False).returncode:
        pytest.skip("no g++ here")
    check = cpp_compiler(sys.executable, INCLUDE, {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)})
    assert check.level is Level.FINE, check.text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words", "fix"),
    [
        ("echo 'x.cpp:1: fatal error: Python.h: No such file' >&2; exit 1", "Python.h", "python3-dev"),
        ("echo 'ld: error: cannot find -lgomp' >&2; exit 1", "gomp", "libgomp1"),
        ("echo broken >&2; exit 1", "broken", "apt install g++"),
        ("exit 3", "exit status 3", "apt install g++"),
    ],
)
def test_a_compiler_that_fails_says_why(script: str, words: str, fix: str, tmp_path: Path) -> None:
    check = cpp_compiler(sys.executable, INCLUDE, _compiler(tmp_path, script))
    assert check.level is Level.BLOCKER and words in check.text and fix in (check.fix or "")


def test_what_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    """As on a folder that is mounted noexec."""
    write = 'while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"'
    check = cpp_compiler(sys.executable, INCLUDE, _compiler(tmp_path, write))
    assert check.level is Level.BLOCKER and "cannot be loaded" in check.text and "noexec" in (check.fix or "")


def test_a_missing_compiler_is_told(tmp_path: Path) -> None:
    check = cpp_compiler(sys.executable, INCLUDE, {"CXX": "/nowhere/g++", "TMPDIR": str(tmp_path)})
    assert check.level is Level.BLOCKER and "no such program" in check.text


# ---------------------------------------------------------------- environment, disk


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("TORCH_COMPILE_DISABLE", "1", Level.BLOCKER),
        ("TORCHDYNAMO_DISABLE", "1", Level.BLOCKER),
        ("TORCHDYNAMO_SUPPRESS_ERRORS", "0", Level.WARNING),  # torch takes any text for yes
        ("CUDA_LAUNCH_BLOCKING", "1", Level.WARNING),
    ],
)
def test_switches_are_named_with_their_fix(name: str, value: str, level: Level) -> None:
    (check,) = switches({name: value})
    assert check.level is level and name in check.text and check.fix == f"unset {name}"


def test_switches_that_are_off_are_fine() -> None:
    environment = {"TORCH_COMPILE_DISABLE": "0", "TORCHDYNAMO_DISABLE": "", "TORCHDYNAMO_SUPPRESS_ERRORS": ""}
    assert amiss(switches(environment)) == {}


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        (FileSystem("ext4", 100 << 30, 1_000_000), Level.FINE, "100 GiB free"),
        (FileSystem("ext4", 1 << 30, 1_000_000), Level.WARNING, "1.00 GiB free"),
        (FileSystem("lustre", 100 << 30, 100), Level.WARNING, "100 inodes"),
        (FileSystem("tmpfs", 100 << 30, 1_000_000), Level.NOTE, "RAM"),
        (FileSystem("nfs4", 100 << 30, 1_000_000), Level.WARNING, "network"),
        (FileSystem(None, None, None), Level.FINE, "n/a free"),
    ],
)
def test_room_is_judged(facts: FileSystem, level: Level, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "file_system", lambda folder: facts)
    (check,) = room({})
    assert check.level is level and words in check.text


def test_no_torch_is_a_blocker_with_the_way_out(tmp_path: Path) -> None:
    found = amiss(examine({"PATH": ""}, str(tmp_path / "python")))
    assert found["torch"].level is Level.BLOCKER and "--python" in (found["torch"].fix or "")

"""Cache folders as torch leaves them, for tests."""

from __future__ import annotations

import hashlib
import os
from base64 import b32encode
from pathlib import Path

from tcompile_tui.host.cache_kinds import Family
from tcompile_tui.host.cache_places import Place

RECORDED = Path(__file__).parent.parent / "data" / "caches" / "inductor_cpu.txt"


def base32(seed: object) -> str:
    """As torch writes hashes: 52 lower-case characters."""
    return b32encode(hashlib.sha256(repr(seed).encode()).digest()).decode().rstrip("=").lower()


def graph(number: int) -> str:
    """The path of an FX graph's entry."""
    key = "f" + base32(("graph", number))[1:]
    return f"fxgraph/{key[1:3]}/{key}"


def code(number: int, suffix: str = ".py") -> str:
    key = "c" + base32(("code", number))[1:]
    return f"{key[1:3]}/{key}{suffix}"


def triton_key(number: int) -> str:
    return base32(("triton", number)).upper()


def add_file(path: Path, content: bytes = b"x" * 100, age_s: float = 0.0, now_s: float = 2e9) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (now_s - age_s, now_s - age_s))
    return path


def add_graph(root: Path, number: int, age_s: float = 0.0, content: bytes = b"x" * 100) -> Path:
    """An FX graph's entry with one file in it; returns the entry."""
    return add_file(root / graph(number) / base32(number), content, age_s).parent


def inductor(root: Path) -> Place:
    root.mkdir(parents=True, exist_ok=True)
    return Place(root, Family.INDUCTOR, "a test's")


def snapshot(root: Path) -> dict[bytes, tuple[int, bytes | None]]:
    """Every name below `root`, with its mode and content or target."""
    found: dict[bytes, tuple[int, bytes | None]] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in folders + files:
            path = os.path.join(folder, name)  # noqa: PTH118 (names are bytes)
            mode = os.lstat(path).st_mode
            link = os.path.islink(path)  # noqa: PTH114
            content = os.readlink(path) if link else None  # noqa: PTH115
            if not link and os.path.isfile(path):  # noqa: PTH113
                with open(path, "rb") as file:
                    content = file.read()
            found[os.path.relpath(path, os.fsencode(root))] = (mode, content)
    return found

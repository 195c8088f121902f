"""Results that are kept row by row, so that a run that is cut off loses one row and the next one goes on from there."""

from __future__ import annotations

import json
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tcompile_tui.host.machine import cpu_name


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add_row(path: Path, row: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def place_of(device: str) -> str:
    """Where rows were made: device, torch, Python. It imports torch."""
    import torch

    on_gpu = torch.device(device).type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else cpu_name()
    return f"{name}, torch {torch.__version__}, Python {platform.python_version()}"


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()

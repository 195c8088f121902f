"""Hazards of a GPU, each a complete run, by hand: `python -m tests.host.hazards.gpu [NAME ...] [--json FILE]`.

Prints how each run ended, what is left of it on the host and on the device, and whether that is what should be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from tcompile_tui.host.gpu import Gpus
from tests.benchmarks.record import Figure, Record, parser, publish, record, table, write

_PROJECT = Path(__file__).resolve().parents[3]
_HEAD = """
import os, subprocess, sys
import torch

def example_inputs():
    return torch.randn(256, 256)

"""
_CLASS = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)
        {init}

    def forward(self, x):
"""
_HOLDER = """import time, torch
torch.zeros(1 << 28, device="cuda" if torch.cuda.is_available() else "cpu")
print("holds", flush=True)
time.sleep(600)"""
# A process that is killed while it uses a device is some seconds on its way out.
_GRACE_S = 15.0
# What a driver's own bookkeeping may move while nothing of ours runs.
_MEMORY_NOISE_BYTES = 64 << 20


@dataclass(frozen=True)
class Hazard:
    """`forward` is a method's body, `init` a line of the constructor, `head` comes before the class. The run must end
    with one of `statuses`, and with `words` in its headline or findings."""

    name: str
    forward: str
    statuses: tuple[int, ...]
    words: str
    options: tuple[str, ...] = ()
    head: str = ""
    init: str = "pass"


HAZARDS = (
    Hazard(
        "out of memory in eager",
        "return self.layer(x) + torch.empty(1 << 40, device=x.device).sum()",
        (3,),
        "out of memory",
    ),
    Hazard(
        "out of memory in the compiled arm only",
        """
        if torch.compiler.is_compiling():
            column = torch.ones(1 << 20, 16, device=x.device)
            x = x + (column @ column.T)[0, 0]
        return self.layer(x)
        """,
        (0, 6),
        "out of memory",
    ),
    Hazard(
        "no room for both arms side by side",
        "return self.layer(x).sin() + self.held[:256]",
        (0,),
        "no-room-side-by-side",
        head="""
            if torch.cuda.is_available():
                total = torch.cuda.get_device_properties(0).total_memory
                torch.cuda.set_per_process_memory_fraction(1.6 * 2**30 / total)
            """,
        init='self.register_buffer("held", torch.ones(1 << 28))',
    ),
    Hazard(
        "device-side assert",
        "return self.layer(x)[torch.full((4,), 10**6, device=x.device)]",
        (3,),
        "device-side assert",
    ),
    Hazard(
        "device-side assert in the compiled arm only",
        """
        if torch.compiler.is_compiling():
            x = x[torch.full((256,), 10**6, device=x.device)]
        return self.layer(x)
        """,
        (0, 6),
        "device-side assert",
    ),
    Hazard(
        "a kernel that hangs",
        "torch.cuda._sleep(10**14); return self.layer(x)",
        (3, 6),
        "not finished in",
        ("--budget", "30"),
    ),
    Hazard(
        "leaves a process that holds the GPU",
        "return self.layer(x)",
        (0,),
        "process-left-behind",
        ("--preset", "smoke"),
        head=f"""
            clean = {{k: v for k, v in os.environ.items() if k in ("PATH", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")}}
            holder = subprocess.Popen([sys.executable, "-c", {_HOLDER!r}], env=clean, start_new_session=True,
                                      stdout=subprocess.PIPE)
            assert holder.stdout.readline() == b"holds\\n"
            """,
    ),
)


@dataclass(frozen=True)
class Ended:
    """How a hazard's run ended. `left` are processes that were not there before; `gpu_bytes` what the device's memory
    in use grew by."""

    name: str
    status: int
    seconds: float
    headline: str
    findings: tuple[str, ...]
    left: tuple[str, ...]
    gpu_bytes: int | None
    right: bool


def _memory_used_bytes() -> int | None:
    with Gpus() as gpus:
        found = gpus.list_gpus()
    return found[0].memory_used_bytes if found else None


def _processes() -> dict[int, str]:
    """Every process but those that have ended: a container's first process may never take their exit status."""
    return {
        process.pid: " ".join(process.info["cmdline"] or ())[:80]
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
    }


def run(hazard: Hazard, device: str) -> Ended:
    processes, memory, began = set(_processes()), _memory_used_bytes(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "net.py"
        body = textwrap.indent(textwrap.dedent(hazard.forward).strip(), " " * 8)
        model.write_text(f"{_HEAD}{textwrap.dedent(hazard.head)}{_CLASS.format(init=hazard.init)}{body}\n")
        options = hazard.options if "--preset" in hazard.options else (*hazard.options, "--preset", "quick")
        done = subprocess.run(
            [sys.executable, "-m", "tcompile_tui", "run", f"{model}:Net", "--device", device, "--json", "-",
             "--runs-dir", folder, *options],
            capture_output=True, text=True, cwd=_PROJECT, env={**os.environ, "PYTHONPATH": _path()},
        )  # fmt: skip
        seconds = time.monotonic() - began
        verdict: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"headline": done.stderr[-400:]}
    until = time.monotonic() + _GRACE_S
    while (left := _left(processes)) and time.monotonic() < until:
        time.sleep(0.1)
    grown = _grown(memory)
    findings = tuple(
        f"{found['id']}: {found['title']} {found['evidence']}".strip() for found in verdict.get("findings", ())
    )
    told = " ".join((verdict["headline"], *findings)).lower()
    right = done.returncode in hazard.statuses and hazard.words in told and not left
    return Ended(
        hazard.name,
        done.returncode,
        seconds,
        verdict["headline"],
        findings,
        left,
        grown,
        right and (grown is None or grown < _MEMORY_NOISE_BYTES),
    )


def _path() -> str:
    return os.pathsep.join(filter(None, (str(_PROJECT), os.environ.get("PYTHONPATH", ""))))


def _left(before: set[int]) -> tuple[str, ...]:
    return tuple(f"{pid} {command}" for pid, command in _processes().items() if pid not in before)


def _grown(before: int | None) -> int | None:
    until = time.monotonic() + _GRACE_S
    while True:
        now = _memory_used_bytes()
        grown = None if before is None or now is None else now - before
        if grown is None or grown < _MEMORY_NOISE_BYTES or time.monotonic() > until:
            return grown
        time.sleep(0.2)


def as_record(seen: list[Ended], device: str) -> Record:
    shown = table(
        ("hazard", "status", "headline", "processes left", "GPU memory left", "as it should be"),
        [
            (
                ended.name,
                str(ended.status),
                ended.headline.replace("|", "\\|").replace("\n", " "),
                str(len(ended.left)),
                "n/a" if ended.gpu_bytes is None else f"{max(0, ended.gpu_bytes) / 2**20:.0f} MiB",
                "yes" if ended.right else "NO",
            )
            for ended in seen
        ],
    )
    right = sum(ended.right for ended in seen)
    name = "hazards of a GPU: named end, no process and no GPU memory left"
    figure = Figure(name, f"{right} of {len(seen)}", f"all {len(HAZARDS)}", right == len(HAZARDS))
    return record("hazards_gpu", [figure], [shown], device=device)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help="only hazards whose name holds one of these")
    options.add_argument("--device", default="cuda", help="cpu: to try this file itself on a machine without a GPU")
    asked = options.parse_args()
    seen: list[Ended] = []
    for hazard in HAZARDS:
        if asked.names and not any(name in hazard.name for name in asked.names):
            continue
        seen.append(run(hazard, asked.device))
        print(json.dumps(asdict(seen[-1]), indent=1), flush=True)
        write(as_record(seen, asked.device), asked.json)  # what is seen is kept, whatever follows
    publish(as_record(seen, asked.device), asked.json)
    return 0 if all(ended.right for ended in seen) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A plain PyTorch file that measures the headline numbers again, without this program."""

from __future__ import annotations

import shlex
from itertools import pairwise

from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.units import duration
from tcompile_tui.report.script.epoch import epoch_piece
from tcompile_tui.report.script.facts import Facts, literal, script_facts
from tcompile_tui.report.script.inputs import inputs_piece
from tcompile_tui.report.script.measuring import HEADERS, comparison_piece, timer_piece
from tcompile_tui.report.script.model import model_piece
from tcompile_tui.report.script.step import steps_piece

_IMPORTS = (
    "copy", "dataclasses", "importlib", "importlib.util", "inspect", "json", "math", "os", "random", "resource",
    "shutil", "statistics", "subprocess", "sys", "tempfile", "time", "typing",
)  # fmt: skip


def script_text(run: ReportedRun) -> str:
    """The file. Raises SpecError with one line where the run says too little, or holds what no plain file can say."""
    facts = script_facts(run)
    body = "\n\n\n".join(
        piece.strip("\n")
        for piece in (
            model_piece(facts),
            inputs_piece(facts),
            steps_piece(facts),
            timer_piece(facts.cuda),
            epoch_piece(facts),
            comparison_piece(facts),
        )
        if piece
    )
    return f"{_head(facts, body)}\n\n\n{body}\n"


def _head(facts: Facts, body: str) -> str:
    start = facts.result.cold_start
    text = f"""\
Eager against torch.compile in mode {facts.result.mode.value}, for {facts.spec.target}: plain PyTorch.

    python THIS_FILE                 the speedup, from neighbouring blocks of both arms
    python THIS_FILE --cold-start    and what a start on empty compile caches costs

The run {facts.run.name} found {speedup_text(facts.result)} and a cold start of
{duration(start.total_s if start is not None else None)}. It was: {_command(facts)}
"""
    setup = f"""\
{_environment(facts)}COLD_START = "--cold-start" in sys.argv
if COLD_START:
    # Before torch is imported, which remembers them.
    caches = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(caches, "triton")
{"" if facts.cuda else HEADERS}

import torch

started = time.perf_counter()
import torch._inductor.compile_fx

IMPORT_S = time.perf_counter() - started
PAIRS = 40"""
    used = [name for name in _IMPORTS if f"{name}." in f"{setup}\n{body}"]
    return f"{_docstring(text)}\n\n" + "\n".join(f"import {name}" for name in used) + f"\n\n{setup}"


def _command(facts: Facts) -> str:
    around = facts.run.surroundings
    return around.command if around is not None else ""


def _environment(facts: Facts) -> str:
    """The variables that the run was given with --env."""
    words = shlex.split(_command(facts))
    words = words[: words.index("--")] if "--" in words else words
    given = [after for word, after in pairwise(words) if word == "--env"]
    given += [word.removeprefix("--env=") for word in words if word.startswith("--env=")]
    pairs = [text.partition("=") for text in given]
    return "".join(f"os.environ[{literal(name)}] = {literal(value)}\n" for name, _, value in pairs)


def _docstring(text: str) -> str:
    """A command or a path may hold quotes and backslashes."""
    safe = "".join(c if c == "\n" or " " <= c <= "~" else ascii(c)[1:-1] for c in text.replace("\\", "\\\\"))
    return '"""' + safe.replace('"""', '\\"\\"\\"').rstrip() + '\n"""'

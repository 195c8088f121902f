"""Ask `tcompile-tui inspect` for a model's inputs, and what its answer means for the form."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tcompile_tui.core.inspect_json import InspectDocument, decode_inspection
from tcompile_tui.core.inspection import Check, InputSource
from tcompile_tui.ui.setup_form import InputRow
from tcompile_tui.ui.setup_sizes import inputs_giver


class InspectError(Exception):
    """There is no answer; the message is one line."""


async def inspect(target: str, cwd: Path, arguments: Sequence[str] = ()) -> InspectDocument:
    """`arguments` are the constructor's. In a process of its own, which ends with the task. Raises InspectError."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tcompile_tui", "inspect", "--json", target,
            *(word for each in arguments for word in ("--arg", each)),
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=cwd,
        )  # fmt: skip
    except OSError as error:
        raise InspectError(f"cannot start tcompile-tui inspect: {error}") from error
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
    try:
        return decode_inspection(output)
    except msgspec.MsgspecError:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise InspectError(lines[-1].removeprefix("error: ") if lines else "inspect gave no answer") from None


@dataclass(frozen=True)
class RowProposal:
    """What may stand in a row, and how it was found."""

    text: str
    how: str


@dataclass(frozen=True)
class Answer:
    """`proposals` by row, for rows that nobody has written in; `summary` is one line, and `failed` if it says why there
    is no proposal."""

    summary: str
    proposals: Mapping[str, RowProposal]
    failed: bool = False


_CHECKED = {Check.META: "tried on meta", Check.CPU: "tried on CPU"}


def answer_for(document: InspectDocument, rows: Sequence[InputRow], written: Mapping[str, str]) -> Answer:
    """What to show for `document`. What a person has written stays."""
    checked = _CHECKED[document.inputs.check] if document.inputs and document.inputs.check else "not tried"
    if document.proposed:
        proposals = {name: each for name, each in _by_row(document, rows).items() if not written.get(name, "").strip()}
        if not proposals:
            return Answer("all inputs are written: nothing to propose", {})
        but = f"proposed, but {document.problem}" if document.problem is not None else None
        return Answer(but or f"proposed, {checked}: enter takes it", proposals)
    if document.inputs is not None and document.inputs.source is InputSource.FILE and document.problem is None:
        given = ", ".join(map(str, document.inputs.arguments))
        return Answer(f"from {inputs_giver(document.target)}: {given}; {checked}", {})
    return Answer(document.problem or "no inputs were found", {}, failed=True)


def _by_row(document: InspectDocument, rows: Sequence[InputRow]) -> dict[str, RowProposal]:
    """A row without a name takes them all."""
    if len(rows) == 1 and not rows[0].name:
        every = document.proposed
        return {"": RowProposal(" ".join(map(str, every)), "; ".join(each.how for each in every))}
    names = {row.name for row in rows}
    return {each.name: RowProposal(each.text, each.how) for each in document.proposed if each.name in names}

"""The verdict as Markdown, for an issue or a pull request: short at first sight, the rest folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tcompile_tui.core.compile_log import CompilePart
from tcompile_tui.core.findings import Finding, Severity
from tcompile_tui.core.reported_run import ReportedRun, environment_rows
from tcompile_tui.core.units import duration
from tcompile_tui.report.mode_rows import known_rows
from tcompile_tui.report.shape_table import HEAD, shape_notes, shape_rows

_SHORT = (
    "decision", "speedup", "end to end", "data a step", "eager step", "compiled step", "cold start", "warm start",
    "outputs", "graph breaks",
)  # fmt: skip
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~!&$]")
_ADDRESS = re.compile(r"https://[\w./#?=&%~+-]+")
_LINKED = re.compile(r"(?<=[@#])(?=\w)")  # GitHub makes links of @names and #numbers


def markdown_text(run: ReportedRun) -> str:
    """GitHub's Markdown. Text of the user's is literal in it."""
    verdict = run.verdict
    lines = [f"### torch.compile: {verdict.decision.value} for {code(run.target)}", "", prose(verdict.headline), ""]
    if verdict.paste_line is not None:
        lines += ["```python", verdict.paste_line, "```", ""]
    rows = known_rows(verdict.modes)
    names = [judged.result.mode.value for judged in verdict.modes]
    short = [row for before, row in zip([("", []), *rows], rows) if row[0] in _SHORT or before[0] == "speedup"]
    if short:
        lines += [*_table(["", *names], short), ""]
    if verdict.shapes is not None:
        table = _table(("dynamic", *HEAD[1:]), shape_rows(verdict.shapes))
        lines += ["**Shapes**", "", *table, "", *(prose(note) for note in shape_notes(verdict.shapes)), ""]
    notes = [finding for finding in verdict.findings if finding.severity is Severity.NOTE]
    causes = [finding for finding in verdict.findings if finding.severity is not Severity.NOTE]
    if causes:
        lines += ["**Findings**", "", *(line for finding in causes for line in _finding(run, finding)), ""]
    if notes:
        lines += _folded("Notes", [line for finding in notes for line in _finding(run, finding)])
    if len(rows) > len(short):
        lines += _folded("All figures", _table(["", *names], rows))
    compiling = _compile_rows(run)
    if compiling:
        lines += _folded("Compile time", _table(["", *names], compiling))
    environment = [(label, [text]) for label, text in environment_rows(run)]
    lines += _folded("Environment", _table(["", ""], environment, literal=True))
    return "\n".join(lines).rstrip() + "\n"


def _finding(run: ReportedRun, finding: Finding) -> Iterator[str]:
    place = f"{code(run.place(finding))}: " if finding.file else ""
    yield f"- **{finding.severity.value}** {place}{prose(finding.title)}"
    link = finding.link or ""
    link = link if _ADDRESS.fullmatch(link) else prose(link)
    for text in (code(finding.evidence), prose(finding.advice), link):
        if text:
            yield f"  <br>{text}"


def _compile_rows(run: ReportedRun) -> list[tuple[str, list[str]]]:
    """The seconds of a cold start's compile by part, forward and backward apart."""
    results = [judged.result for judged in run.verdict.modes]
    directions = (
        ("forward", [result.forward_compile_s for result in results]),
        ("backward", [result.backward_compile_s for result in results]),
    )
    return [
        (f"{name}: {part.value}", [duration(seconds.get(part)) for seconds in by_mode])
        for name, by_mode in directions
        for part in CompilePart
        if any(part in seconds for seconds in by_mode)
    ]


def _table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], literal: bool = False) -> list[str]:
    """`literal`: the cells are the user's text."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for label, cells in rows:
        texts = [code(cell).replace("|", "\\|") if literal else prose(cell) for cell in cells]
        lines.append(f"| {'&nbsp;' * 2 * label.startswith(' ')}{prose(label.strip())} | {' | '.join(texts)} |")
    return lines


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def prose(text: str) -> str:
    """Text in which nothing is markup."""
    return _LINKED.sub("<!-- -->", _SPECIAL.sub(r"\\\g<0>", _one_line(text)))


def code(text: str) -> str:
    """A code span that holds whatever the text holds. Within a table each | needs a backslash before it."""
    line = _one_line(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{blank}{line}{blank}{fence}" if line else ""


def _one_line(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())

"""One finding in full: the source around its place, the explanation, the hints, the link."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.highlight import highlight
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from tcompile_tui.core.compile_log import BreakSite
from tcompile_tui.core.findings import Finding
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import RunState
from tcompile_tui.core.units import plural
from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.widgets.decision_look import SEVERITY_MARKS, SEVERITY_STYLES
from tcompile_tui.ui.widgets.finding_list import GRAPH_BREAK
from tcompile_tui.ui.widgets.literal import literal, one_line

_AROUND = 4
_MAX_SOURCE_BYTES = 2_000_000
_DIM = "$foreground-muted"


@dataclass(frozen=True)
class SourceLines:
    """Lines of a file as it is now, from `first` (1 is the file's first line) on."""

    first: int
    lines: tuple[str, ...]


def read_source(file: Path, line: int, around: int = _AROUND) -> SourceLines | None:
    """Lines around `line`; None where the file is gone, no longer has that line, or is no plain file."""
    try:
        if not file.is_file() or file.stat().st_size > _MAX_SOURCE_BYTES:
            return None
        lines = literal(file.read_text(encoding="utf-8", errors="replace")).removesuffix("\n").split("\n")
    except OSError:
        return None
    if not 1 <= line <= len(lines):
        return None
    first = max(1, line - around)
    return SourceLines(first, tuple(lines[first - 1 : line + around]))


def break_site(state: RunState, finding: Finding) -> BreakSite | None:
    """The recorded graph break behind a finding: it has the whole explanation and every hint."""
    if finding.id != GRAPH_BREAK:
        return None
    sites = [
        site
        for process in state.processes.values()
        if process.phase is Phase.COLD
        for site in process.compile.break_sites.values()
        if (site.first.file, site.first.line) == (finding.file, finding.line)
    ]
    exact = (site for site in sites if finding.title.endswith(site.first.reason.strip().partition("\n")[0]))
    return next(exact, sites[0] if sites else None)


class FindingScreen(ModalScreen[None], CommandScreen[None]):
    """`cwd` is where the run was started: a relative path in a record is meant from there."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("escape,q,enter", "dismiss", "Back", "Back to the verdict"),
    )
    HELP = "What one finding stands on, and what to do about it. The source is the file as it is now."
    DEFAULT_CSS = """
    FindingScreen { align: center middle; }
    FindingScreen > VerticalScroll { width: 100%; max-width: 116; height: auto; max-height: 100%; margin: 1 2;
        background: $surface; scrollbar-size-vertical: 1; }
    FindingScreen Static { height: auto; margin-bottom: 1; }
    FindingScreen .source { background: $background; }
    FindingScreen Footer { dock: bottom; }
    """

    def __init__(
        self, finding: Finding, site: BreakSite | None = None, cwd: Path | None = None, ascii_only: bool = False
    ) -> None:
        super().__init__()
        self._finding = finding
        self._site = site
        self._cwd = cwd
        self._ascii_only = ascii_only

    def compose(self) -> ComposeResult:
        finding = self._finding
        mark = SEVERITY_MARKS[finding.severity]
        with VerticalScroll(classes="panel") as panel:
            panel.border_title = Content(f"{mark} {finding.severity.value}")
            title = Content.styled(one_line(finding.title, self._ascii_only), SEVERITY_STYLES[finding.severity])
            yield Static(title.stylize("bold"))
            if finding.file is not None:
                yield Static(self._place())
                yield Static(self._source(), classes="source")
            for label, text in self._texts():
                yield Static(Content.assemble((f"{label}\n", _DIM), literal(text, self._ascii_only).strip("\n")))
        yield Footer(show_command_palette=False)

    def _texts(self) -> list[tuple[str, str]]:
        finding, site = self._finding, self._site
        if site is None:
            texts = [("evidence", finding.evidence), ("what to do", finding.advice)]
        else:
            hints = "\n".join(f"- {hint}" for hint in site.first.hints) or finding.advice
            reason = site.first.reason.strip()
            explanation = site.first.explanation or (reason if "\n" in reason else "")
            texts = [("explanation", explanation), ("what to do", hints)]
            texts.append(("how often", f"{plural(site.times, 'time')}; after it {self._after()}"))
        return [(label, text) for label, text in [*texts, ("link", finding.link or "")] if text.strip()]

    def _after(self) -> str:
        assert self._site is not None
        return "the whole function runs eager" if self._site.first.frame_dropped else "Dynamo goes on in a new graph"

    def _place(self) -> Content:
        finding, site = self._finding, self._site
        line = f":{finding.line}" if finding.line is not None else ""
        function = one_line(site.first.function, self._ascii_only) if site is not None and site.first.function else ""
        place = Content.styled(one_line(f"{finding.file}{line}", self._ascii_only), "bold")
        return Content.assemble(place, (f"  in {function}", _DIM)) if function else place

    def _source(self) -> Content:
        finding = self._finding
        recorded = one_line(self._site.first.source or "") if self._site is not None else ""
        path = Path(finding.file or "")
        path = path if path.is_absolute() or self._cwd is None else self._cwd / path
        found = read_source(path, finding.line) if finding.line is not None else None
        if found is None:
            gone = "the file, or this line of it, is not there any more"
            return Content.assemble((f"{recorded}\n", "bold") if recorded else "", (gone, _DIM))
        excerpt = _excerpt(found, finding.line or 0, self._ascii_only)
        if recorded and recorded != one_line(found.lines[(finding.line or 0) - found.first]):
            changed = f"\nthe file has changed since; the line was: {recorded}"
            return Content.assemble(excerpt, (changed, "$warning"))
        return excerpt


def _excerpt(found: SourceLines, marked: int, ascii_only: bool) -> Content:
    """Numbered lines, with a sign and bold type at the one that is meant."""
    width = len(str(found.first + len(found.lines) - 1))
    text = "\n".join(literal(line, ascii_only) or " " for line in found.lines)
    rows = []
    for number, line in enumerate(highlight(text, language="python").split("\n"), found.first):
        meant = number == marked
        sign = "> " if meant else "  "
        number_text = f"{sign}{number:>{width}} "
        if meant:
            rows.append(Content.styled(number_text + line.plain, "bold reverse"))
        else:
            rows.append(Content.assemble((number_text, _DIM), line))
    return Content("\n").join(rows)

"""The head of the Verdict: the decision and the speedup large, the headline, and what to do next."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Digits, Static

from tcompile_tui.core.shape_verdict import speedup_text
from tcompile_tui.core.units import plural, ratio
from tcompile_tui.core.verdict import Verdict
from tcompile_tui.ui.widgets.big_word import BigWord
from tcompile_tui.ui.widgets.decision_look import LOOKS
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.prose import Prose


class VerdictHead(Vertical):
    """`step` says what to do next; with a line to paste it follows that line."""

    DEFAULT_CSS = """
    VerdictHead { height: auto; padding: 0 1; border: round $foreground-muted; border-title-style: bold; }
    VerdictHead > .figures { height: auto; }
    VerdictHead .gap { width: 1fr; max-width: 8; height: 1; }
    VerdictHead Digits { width: auto; text-style: bold; }
    VerdictHead .interval { width: auto; height: 3; margin-left: 1; color: $foreground-muted; }
    VerdictHead .word { text-style: bold; height: auto; }
    VerdictHead .plain { display: none; height: auto; }
    VerdictHead > .headline { height: auto; }
    VerdictHead.-no-figures > .headline { text-style: bold; margin-top: 1; }
    VerdictHead > .step { height: auto; }
    VerdictHead.-no-figures > .step { margin-top: 1; }

    VerdictHead.-enable { border: heavy $success; }
    VerdictHead.-enable .word { color: $success; }
    VerdictHead.-care { border: double $success; }
    VerdictHead.-care .word { color: $success; }
    VerdictHead.-test { border: dashed $warning; }
    VerdictHead.-test .word { color: $warning; }
    VerdictHead.-skip { border: round $primary; }
    VerdictHead.-skip .word { color: $primary; }
    VerdictHead.-eager { border: dashed $warning; }
    VerdictHead.-eager .word { color: $warning; }
    VerdictHead.-cannot { border: double $error; }
    VerdictHead.-cannot .word { color: $error; }
    VerdictHead.-failed { border: heavy $error; }
    VerdictHead.-failed .word { color: $error; }
    VerdictHead.-stopped { border: dashed $foreground-muted; }

    .-tiny VerdictHead .large, VerdictHead.-plain .large { display: none; }
    .-tiny VerdictHead .plain, VerdictHead.-plain .plain { display: block; }
    VerdictHead.-plain { border: ascii $foreground-muted; }
    """

    def __init__(self, verdict: Verdict, step: str, ascii_only: bool, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._verdict = verdict
        self._step = step
        self._ascii_only = ascii_only
        look = LOOKS[verdict.decision]
        symbol = look.plain_symbol if ascii_only else look.symbol
        self.border_title = Content(f"{symbol} {look.meaning}")
        if verdict.best is not None and len(verdict.modes) > 1:
            best = verdict.best.result.mode.value
            self.border_subtitle = Content(f"best of {plural(len(verdict.modes), 'mode')}: {best}")
        self.add_class(look.css)
        self.set_class(ascii_only, "-plain")
        self.set_class(not self._has_speedup, "-no-figures")

    @property
    def _has_speedup(self) -> bool:
        return self._verdict.speedup is not None

    @property
    def _label(self) -> str:
        """What the interval beside the figure is of."""
        best = self._verdict.best
        return "end to end" if best is not None and best.result.waits_for_data else "95 % from"

    def compose(self) -> ComposeResult:
        word = self._verdict.decision.value
        speedup = self._verdict.speedup
        with Horizontal(classes="figures large"):
            yield BigWord(word, classes="word")
            if speedup is not None:
                yield Static(classes="gap")
                yield Digits(ratio(speedup.value))
                interval = (
                    f"{self._label}\n{ratio(speedup.lo)} to\n{ratio(speedup.hi)}" if speedup.lo is not None else ""
                )
                yield Static(interval, classes="interval", markup=False)
        yield Static(word, classes="word plain", markup=False)
        if speedup is not None:
            yield Static(f"{speedup_text(speedup)} of eager speed", classes="plain", markup=False)
        yield Prose(Content(one_line(self._verdict.headline, self._ascii_only)), classes="headline")
        yield Prose(self._step_line(), classes="step")

    def _step_line(self) -> Content:
        line = self._verdict.paste_line
        if line is None:
            return Content.assemble(("next  ", "$foreground-muted"), self._step)
        return Content.assemble(
            ("paste ", "$foreground-muted"), (f" {line} ", "bold reverse"), ("  y copies it", "$foreground-muted")
        )

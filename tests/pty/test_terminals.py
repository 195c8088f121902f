"""Every screen in terminals of all kinds: without colours, with sixteen, without Unicode, small, and resized."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .terminal import Terminal

DEMO_OVER = "ended: ENABLE"
_ASCII = {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@dataclass(frozen=True)
class Kind:
    """A terminal and what surrounds it."""

    environment: dict[str, str] = field(default_factory=dict)
    columns: int = 80
    lines: int = 24


KINDS = {
    "small": Kind(columns=40, lines=12),
    "no colour": Kind({"NO_COLOR": "1", "TERM": "screen-256color"}),
    "sixteen colours": Kind({"TERM": "linux"}),
    "ascii": Kind(_ASCII),
    "ascii small": Kind(_ASCII, 40, 12),
}

# The keys that lead from the end of the demo through every screen, and what is seen there.
WALK = (
    (("l",), "what the model prints"),
    (("v",), "it pays off here"),
    (("enter",), "warning"),
    (("escape", "?"), "Help "),
    (("escape", "ctrl+p"), "Search for commands"),
    (("escape", "h"), "No run yet"),
    (("escape", "q"), "Benchmark"),
    (("y",), "Copied"),
)


def check(terminal: Terminal, kind: Kind) -> None:
    """What holds for every screen."""
    terminal.wait_for(lambda text: all(text.split("\n")[line].strip() for line in (0, -1)))  # title and footer
    assert terminal.settle(), "it draws without an end"
    text = terminal.text
    assert re.search("-{5}|[─━▔]{5}", text) or "No run yet" in text, f"a panel without a border\n{text}"
    if "LANG" in kind.environment:
        # What the encoding lacks arrives as an escape, six columns wide.
        assert text.isascii() and not re.search(r"\\[uUx][0-9a-f]", text), text
    if "NO_COLOR" in kind.environment:
        assert all(_is_grey(colour) for colour in terminal.colours), terminal.colours
    if kind.environment.get("TERM") == "linux":
        assert not [colour for colour in terminal.colours if re.fullmatch("[0-9a-f]{6}", colour)], terminal.colours


def _is_grey(colour: str) -> bool:
    named = colour in ("default", "black", "white", "brightblack", "brightwhite")
    return named or colour[:2] == colour[2:4] == colour[4:]


@pytest.mark.parametrize("name", KINDS)
def test_every_screen_is_drawn(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    with Terminal(
        "demo", "--speed", "1000",
        cwd=tmp_path, columns=kind.columns, lines=kind.lines, environment=kind.environment,
    ) as terminal:  # fmt: skip
        terminal.wait_for(DEMO_OVER)
        check(terminal, kind)
        for keys, seen in WALK:
            terminal.press(*keys)
            terminal.wait_for(seen)
            check(terminal, kind)
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.is_restored
        assert b"Traceback (most recent" not in terminal.received


def test_a_resize_in_mid_run_is_followed_at_once(tmp_path: Path) -> None:
    with Terminal("demo", "--speed", "1", cwd=tmp_path) as terminal:
        terminal.wait_for("worker ")
        for columns, lines in ((40, 12), (1, 1), (200, 60), (80, 24)):
            terminal.resize(columns, lines)
            if columns >= 40:
                terminal.wait_for(lambda text: "Pause" in text.split("\n")[-1] and "eager" in text)
            terminal.settle()
            assert all(len(line) <= columns for line in terminal.text.split("\n"))
        terminal.wait_for(lambda text: "worker " in text and text.split("\n")[-1].endswith("? Help"))
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert b"Traceback (most recent" not in terminal.received

"""Sentences on a screen: wrapped between words, never between a number and its unit."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.content import Content

from tcompile_tui.ui.widgets.prose import Prose, wrapped
from tests.ui.screen_app import screen_text

SENTENCE = "a cold start is paid back after 9,704 steps (20.6 s); it saves 83 % of a day"


def test_a_number_goes_to_the_next_line_with_its_unit() -> None:
    for width in range(12, len(SENTENCE) + 1):
        lines = [line.plain for line in wrapped(Content(SENTENCE), width)]
        assert max(map(len, lines)) <= width
        assert " ".join(lines) == SENTENCE
        assert all(any(part in line for line in lines) for part in ("9,704 steps", "(20.6 s)", "83 %"))


def test_styles_stay_with_their_words() -> None:
    lines = wrapped(Content.assemble("it takes ", ("20.6 s", "bold"), " in all"), 12)
    styled = [line.plain[span.start : span.end] for line in lines for span in line.spans]
    assert "".join(styled).strip() == "20.6 s"


def test_a_word_that_is_too_long_is_broken_and_nothing_stays_a_line() -> None:
    assert [line.plain for line in wrapped(Content("abcdefgh"), 5)] == ["abcde", "fgh"]
    assert len(wrapped(Content(""), 5)) == 1


async def test_it_is_as_high_as_its_lines() -> None:
    class Page(App[None]):
        def compose(self) -> ComposeResult:
            yield Prose(Content(SENTENCE))

    app = Page()
    async with app.run_test(size=(51, 6)) as pilot:
        await pilot.pause()
        assert app.query_one(Prose).size.height == 2
        first, second = (line.rstrip() for line in screen_text(app).splitlines()[:2])
    assert first.endswith("9,704 steps") and second.startswith("(20.6 s)")

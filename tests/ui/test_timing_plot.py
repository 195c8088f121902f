"""The timing plot as a person sees it: the widget's lines as text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby, pairwise

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from textual.app import App, ComposeResult
from textual.geometry import Size

from tcompile_tui.core.series import StepSeries
from tcompile_tui.core.state import ArmSteps
from tcompile_tui.ui.widgets.plot_columns import ColumnReader
from tcompile_tui.ui.widgets.plot_scale import StepView, round_up, short, step_view
from tcompile_tui.ui.widgets.timing_plot import TimingPlot

MS = 1_000_000


class PlotApp(App[None]):
    def __init__(self, ascii_only: bool = False) -> None:
        super().__init__()
        self.plot = TimingPlot(ascii_only=ascii_only)

    def compose(self) -> ComposeResult:
        yield self.plot


@asynccontextmanager
async def shown(
    eager: ArmSteps | None,
    compiled: ArmSteps | None,
    size: tuple[int, int] = (50, 10),
    ascii_only: bool = False,
) -> AsyncIterator[TimingPlot]:
    """A plot on a screen, with these series."""
    app = PlotApp(ascii_only)
    async with app.run_test(size=size) as pilot:
        app.plot.show(eager, compiled)
        await pilot.pause()
        yield app.plot


def arm(steps_ns: Sequence[int], compiled_at: Sequence[int] = ()) -> ArmSteps:
    steps = ArmSteps(compiled_at=list(compiled_at), recent_step_ns=float(steps_ns[-1]) if steps_ns else None)
    steps.series.extend(steps_ns)
    return steps


def lines(plot: TimingPlot) -> list[str]:
    return [plot.render_line(y).text for y in range(plot.size.height)]


def rows_with(plot: TimingPlot, glyph: str) -> list[int]:
    """Rows of the plot itself (no legend, no axis) where a character stands."""
    return [y for y, line in enumerate(lines(plot)[1:-2], start=1) if glyph in line[8:]]


def label_row(plot: TimingPlot, label: str) -> int:
    return next(y for y, line in enumerate(lines(plot)) if line[:7].strip() == label)


# ---------------------------------------------------------------- what is drawn


async def test_without_steps_it_says_so() -> None:
    async with shown(None, ArmSteps()) as plot:
        text = "\n".join(lines(plot))
        assert text.split() == ["no", "steps", "yet"]


async def test_the_two_series_lie_at_their_times_and_differ_without_colour() -> None:
    async with shown(arm([4 * MS] * 100), arm([2 * MS] * 100), ascii_only=True) as plot:
        assert rows_with(plot, ".") == [label_row(plot, "4 ms")]
        assert rows_with(plot, ":") == [label_row(plot, "2 ms")]
        assert lines(plot)[0].startswith(". eager 4.00 ms  : compiled 2.00 ms  whole run")


async def test_cells_shared_by_both_have_their_own_glyph() -> None:
    async with shown(arm([4 * MS] * 100), arm([4 * MS] * 100), ascii_only=True) as plot:
        assert rows_with(plot, "#") and not rows_with(plot, ".") and not rows_with(plot, ":")


async def test_in_braille_eager_is_dotted_and_compiled_is_full() -> None:
    left, right = 0x47, 0xB8  # the dots of a cell's two halves
    async with shown(arm([4 * MS] * 100), None) as plot:
        eager = braille(plot)
    async with shown(None, arm([4 * MS] * 100)) as plot:
        compiled = braille(plot)
    assert eager and all(dots & left and not dots & right for dots in eager)
    assert compiled and all(dots & left and dots & right for dots in compiled)


def braille(plot: TimingPlot) -> list[int]:
    text = "".join(lines(plot)[1:-2])
    return [ord(char) - 0x2800 for char in text if "\u2800" < char <= "\u28ff"]


async def test_ascii_only_is_ascii() -> None:
    async with shown(arm([4 * MS] * 100), arm([20_000 * MS] + [2 * MS] * 50, [0]), ascii_only=True) as plot:
        assert "\n".join(lines(plot)).isascii()


async def test_one_compile_step_does_not_flatten_the_plot() -> None:
    slow_first = [20_000 * MS] + [3 * MS] * 11
    async with shown(arm([5 * MS] * 12), arm(slow_first, [0]), ascii_only=True) as plot:
        drawn = lines(plot)
        assert drawn[1][8] == "^"  # at the first step, on the top row
        assert "^" not in "".join(drawn[2:])
        assert rows_with(plot, ":") != rows_with(plot, ".")
        plot.toggle_log()
        assert "^" not in "".join(lines(plot))
        assert [line[:7].strip() for line in lines(plot)].count("10 s") == 1


async def test_times_close_to_each_other_are_told_apart() -> None:
    async with shown(arm([5 * MS] * 50), arm([4_900_000] * 50), ascii_only=True) as plot:
        (eager,), (compiled,) = rows_with(plot, "."), rows_with(plot, ":")
        assert compiled - eager >= 2
        assert "0" not in [line[:8].strip(" +|") for line in lines(plot)]


@pytest.mark.parametrize(("step_ns", "unit"), [(400, "ns"), (40_000, "us"), (4 * MS, "ms"), (4_000 * MS, "s")])
async def test_times_have_their_unit(step_ns: int, unit: str) -> None:
    async with shown(arm([step_ns, 2 * step_ns] * 20), None) as plot:
        labels = [match[1] for line in lines(plot)[1:-2] if (match := re.match(r" *\d[\d.]* ?(\w+)", line))]
        assert labels and set(labels) == {unit}


@pytest.mark.parametrize("log_scale", [False, True])
@pytest.mark.parametrize("level_us", [3, 47, 512, 5_100, 98_000])
async def test_the_smallest_plot_has_two_times(level_us: int, log_scale: bool) -> None:
    level_ns = 1_000 * level_us
    async with shown(arm([level_ns] * 50), arm([level_ns * 5 // 8] * 50), size=(40, 6)) as plot:
        plot.log_scale = log_scale
        assert len([line for line in lines(plot)[1:-2] if line[:7].strip()]) >= 2


@pytest.mark.parametrize("steps", [300, 100_000])
async def test_compile_marks_stand_below_their_steps(steps: int) -> None:
    async with shown(None, arm([3 * MS] * steps, [0, steps // 2])) as plot:
        axis = lines(plot)[-2][8:]
        marks = [cell for cell, char in enumerate(axis) if char == "c"]
        assert marks == [0, len(axis) * (steps // 2) // round_up(steps)]


async def test_one_step_over_several_cells_has_one_mark() -> None:
    async with shown(None, arm([3 * MS] * 10, [4])) as plot:
        assert lines(plot)[-2].count("c") == 1


async def test_the_legend_keeps_both_names_when_it_is_narrow() -> None:
    async with shown(arm([42_000] * 10), arm([41_000] * 10), size=(40, 6)) as plot:
        assert "eager" in lines(plot)[0] and "compiled" in lines(plot)[0]
        assert lines(plot)[0].count("ms") == 0


# ---------------------------------------------------------------- zoom


async def test_a_followed_view_shows_the_last_steps_of_each_series() -> None:
    eager = arm([9 * MS] * 900 + [4 * MS] * 100)
    compiled = arm([9 * MS] * 50 + [2 * MS] * 100)
    async with shown(eager, compiled, ascii_only=True) as plot:
        plot.window = 100
        assert rows_with(plot, ".") == [label_row(plot, "4 ms")]
        assert rows_with(plot, ":") == [label_row(plot, "2 ms")]
        assert "last 100" in lines(plot)[0]
        assert lines(plot)[-1].split() == ["step", "-100", "-80", "-60", "-40", "-20", "now"]


async def test_zooming_in_and_out_again_ends_at_the_whole_run() -> None:
    async with shown(arm([4 * MS] * 300), None) as plot:
        seen = []
        for _ in range(6):
            plot.zoom_in()
            seen.append(plot.window)
        assert seen == [200, 100, 50, 20, 10, 10]
        for _ in range(6):
            plot.zoom_out()
            seen.append(plot.window)
        assert seen[6:] == [20, 50, 100, 200, None, None]
        assert "whole run" in lines(plot)[0]


async def test_a_followed_view_moves_what_is_drawn() -> None:
    """Columns keep their steps while new ones come in: no shimmer."""
    steps_ns = [MS * (3 + (index * 7919) % 5) for index in range(2_000)]
    eager = arm(steps_ns[:1_000])
    async with shown(eager, None) as plot:
        plot.window = 84
        before = [line[8:] for line in lines(plot)[1:-2]]
        eager.series.extend(steps_ns[1_000:1_004])  # two cells of two steps
        plot.show(eager, None)
        after = [line[8:] for line in lines(plot)[1:-2]]
        assert len(before[0]) == 42
        # The first column is joined to one that has left the view.
        assert [line[3:] for line in before] == [line[1:-2] for line in after]


# ---------------------------------------------------------------- when it draws


async def test_it_refreshes_only_when_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    eager, compiled = arm([4 * MS] * 10), arm([2 * MS] * 10)
    async with shown(eager, compiled) as plot:
        refreshed: list[None] = []
        monkeypatch.setattr(plot, "refresh", lambda *_, **__: refreshed.append(None))
        plot.show(eager, compiled)
        assert not refreshed
        compiled.compiled_at.append(3)
        plot.show(eager, compiled)
        assert len(refreshed) == 1
        eager.series.extend([4 * MS])
        plot.show(eager, compiled)
        assert len(refreshed) == 2
        plot.show(eager, arm([2 * MS] * 10, [3]))  # another process, with as many steps
        assert len(refreshed) == 3


async def test_another_process_is_drawn_anew() -> None:
    async with shown(None, arm([1 * MS] * 100), ascii_only=True) as plot:
        plot.show(arm([4 * MS] * 100), arm([2 * MS] * 100))
        assert rows_with(plot, ":") == [label_row(plot, "2 ms")]


async def test_a_new_theme_is_drawn_in_its_colours() -> None:
    async with shown(None, arm([2 * MS] * 100)) as plot:
        before = plot.render_line(0)
        plot.app.theme = "textual-light"
        for _ in range(3):
            await asyncio.sleep(0)
        assert plot.render_line(0).text == before.text
        assert plot.render_line(0) != before


async def test_colours_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment has a style: without one, Textual's NO_COLOR filter fails."""
    monkeypatch.setenv("NO_COLOR", "1")
    for data in ((None, None), (arm([4 * MS] * 10), arm([2 * MS] * 10, [0]))):
        async with shown(*data) as plot:
            drawn = [segment for y in range(plot.size.height) for segment in plot.render_line(y)]
            assert drawn and all(segment.style is not None for segment in drawn)
            assert plot.app.no_color


@pytest.mark.parametrize("size", [(40, 6), (50, 10), (80, 24), (120, 30), (200, 60), (1, 1), (7, 3), (24, 4)])
async def test_it_fills_exactly_its_size(size: tuple[int, int]) -> None:
    async with shown(arm([4 * MS] * 1_000), arm([20_000 * MS] + [2 * MS] * 400, [0]), size=size) as plot:
        assert plot.size == Size(*size)
        assert [plot.render_line(y).cell_length for y in range(size[1])] == [size[0]] * size[1]
        assert "".join(lines(plot)).strip()


def test_it_never_raises() -> None:
    """Any size, any data, any view. One app for all examples, as starting one takes long."""
    times = st.lists(st.one_of(st.integers(0, 10), st.integers(0, 2**62)), max_size=400)

    @settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
    @given(data=st.data(), width=st.integers(0, 210), height=st.integers(0, 64))
    def draw(data: st.DataObject, width: int, height: int) -> None:
        arms = [arm(data.draw(times), sorted(data.draw(st.sets(st.integers(0, 400))))) for _ in range(2)]
        plot = plots[data.draw(st.booleans())]
        plot.window = data.draw(st.none() | st.integers(-1, 500))
        plot.log_scale = data.draw(st.booleans())
        plot.show(*(data.draw(st.sampled_from((steps, None))) for steps in arms))
        drawn = plot._draw(width, height)
        assert [strip.cell_length for strip in drawn] == [width] * (height if width else 0)
        arms[0].series.extend(data.draw(times))
        plot.show(*arms)
        plot._draw(width, height)

    plots: dict[bool, TimingPlot] = {}

    class BothApp(App[None]):
        def compose(self) -> ComposeResult:
            for ascii_only in (False, True):
                plots[ascii_only] = TimingPlot(ascii_only=ascii_only)
                yield plots[ascii_only]

    async def run() -> None:
        async with BothApp().run_test():
            draw()

    asyncio.run(run())


# ---------------------------------------------------------------- columns


@given(
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=4), first=st.integers(-5, 5), count=st.integers(1, 40)
)
def test_columns_of_a_growing_series_hold_its_steps(lengths: list[int], first: int, count: int) -> None:
    reader, series, steps = ColumnReader(), StepSeries(), 300
    for length in lengths:
        series.extend((len(series) + index) * 7919 % 1_009 for index in range(length))
        columns = reader.read(series, len(series), first, steps, count)
        for number, column in enumerate(columns, start=first):
            begin, end = number * steps // count, (number + 1) * steps // count
            own = sorted(series.slice(begin, max(begin + 1, end))) if begin >= 0 else []
            assert (column.low, column.high) == (own[0], own[-1]) if column else not own
            if column:
                assert own[0] <= column.body_low <= column.body_high <= own[-1]


def test_long_columns_leave_no_step_out() -> None:
    series, columns = StepSeries(), 37
    series.extend(range(1, 200_001))
    told = ColumnReader().read(series, 200_000, 0, 200_000, columns)
    assert told[0] is not None and told[-1] is not None
    assert (told[0].low, told[-1].high) == (1, 200_000)
    assert all(one and other and one.high + 1 == other.low for one, other in pairwise(told))


# ---------------------------------------------------------------- scales


@given(number=st.integers(1, 10**9))
def test_a_growing_run_rarely_changes_its_scale(number: int) -> None:
    assert number <= round_up(number) <= max(number + 1, 1.5 * number)
    assert round_up(round_up(number)) == round_up(number)


def test_scales_of_the_steps_are_few() -> None:
    assert len(list(groupby(round_up(number) for number in range(1_000, 100_001)))) == 21


@given(length=st.integers(1, 10_000), window=st.integers(1, 500), count=st.integers(1, 300))
def test_a_followed_view_ends_with_the_last_step(length: int, window: int, count: int) -> None:
    view = StepView(window, follow=True)
    first = view.first_column(length, count)
    assert view.steps_from(first + count, count) >= length
    assert view.steps_from(first + count - 1, count) <= length
    assert step_view(length, window) == (view if window < length else step_view(length, None))


@pytest.mark.parametrize(
    ("count", "text"), [(950, "950"), (2_500, "2,500"), (20_000, "20k"), (1_500_000, "1.5M"), (3 * 10**9, "3G")]
)
def test_short_counts(count: int, text: str) -> None:
    assert short(count) == text

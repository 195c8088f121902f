"""The figures of the html report, as SVG that takes its colours and its font from the page.

Needs matplotlib, which is imported nowhere else.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from tcompile_tui.core.compile_log import CompilePart
from tcompile_tui.core.projections import total_times
from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import ONE_COLD_START, Arm, Phase, Starts
from tcompile_tui.core.state import ArmSteps
from tcompile_tui.core.units import count, duration

# Width and height in inches at 96 dots, for a wide and for a narrow page.
SIZES = {"wide": (8.4, 3.4), "narrow": (3.7, 3.4)}
# Of a logarithmic x axis: what has room.
_TICKS = {"wide": 8, "narrow": 4}
_POINTS = 140
# Stand-ins that the page's own colours take the place of: CSS variables by name.
_INK, _DIM, _GRID = "#010203", "#010204", "#010205"
_SERIES = ("#010211", "#010212", "#010213", "#010214", "#010215", "#010216")
_VARIABLES = {_INK: "ink", _DIM: "dim", _GRID: "grid"} | {colour: f"s{i}" for i, colour in enumerate(_SERIES)}
_STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0, "svg.fonttype": "none",
    "text.color": _INK, "axes.labelcolor": _DIM, "axes.edgecolor": _GRID, "axes.grid": True, "grid.color": _GRID,
    "grid.linewidth": 0.6, "xtick.color": _DIM, "ytick.color": _DIM, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "text.parse_math": False,
}  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """One figure: `svgs` has one picture for each of SIZES."""

    title: str
    caption: str
    svgs: dict[str, str]


def drawings(run: ReportedRun) -> list[Drawing]:
    """Those that the run has figures for."""
    result = run.shown_result
    if result is None:
        return []
    found = []
    series = list(_series(run))
    if series:
        text = "Every step from the first call on, both axes logarithmic. The line is the median of neighbouring steps,"
        text += " the band reaches from the smallest to the largest; a dot marks where steady steps begin."
        found.append(_draw(f"Step times, {result.mode.value}", text, lambda axes: _draw_series(axes, series)))
    results = [judged.result for judged in run.verdict.modes]
    if any(total_times(each, _starts(run)) for each in results):
        text = "Wall time of a run of so many steps, starts paid, with the 95 % interval. The dot is the break-even."
        found.append(_draw("Total time over steps", text, lambda axes: _draw_totals(axes, run, results)))
    compiled = [each for each in results if each.forward_compile_s or each.backward_compile_s]
    if compiled:
        text = "The seconds of a cold start's compile by part, without what nested parts took."
        found.append(_draw("Compile time by part", text, lambda axes: _draw_compile(axes, compiled)))
    return found


def _draw(title: str, caption: str, draw: Callable[[Axes], None]) -> Drawing:
    svgs = {}
    for number, (name, size) in enumerate(SIZES.items()):
        with rc_context({**_STYLE, "svg.hashsalt": f"{title}-{name}"}):
            figure = Figure(figsize=size, layout="constrained")
            FigureCanvasSVG(figure)
            axes = figure.add_subplot()
            axes.set_axisbelow(True)
            draw(axes)
            if axes.get_xscale() == "log":
                axes.xaxis.set_major_locator(LogLocator(numticks=_TICKS[name]))
            handles, labels = axes.get_legend_handles_labels()
            columns = max(1, len(labels) if name == "wide" else min(2, len(labels)))
            figure.legend(handles, labels, loc="outside upper left", ncols=min(columns, 6), handlelength=1.4)
            file = io.StringIO()
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        svgs[name] = _for_page(file.getvalue(), prefix=f"{re.sub('[^a-z]', '', title.lower())}{number}-", title=title)
    return Drawing(title, caption, svgs)


def _for_page(svg: str, prefix: str, title: str) -> str:
    """Without what a file of its own needs (a document type, metadata, a size), with names that are unique within
    the page, and with the page's colours and font."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", svg)
    svg = svg.replace("'DejaVu Sans'", "system-ui, sans-serif")
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)


# ---------------------------------------------------------------- step times


@dataclass(frozen=True)
class _Series:
    label: str
    steps: ArmSteps


def _series(run: ReportedRun) -> Iterator[_Series]:
    eager, mode = run.state.process_of(Phase.EAGER), run.shown_mode
    if eager is not None and Arm.EAGER in eager.arms:
        yield _Series("eager", eager.arms[Arm.EAGER])
    for phase, label in ((Phase.COLD, "compiled, cold start"), (Phase.WARM, "compiled, warm start")):
        first = next(iter(run.state.processes_of(phase, mode)), None)
        if first is not None and Arm.COMPILED in first.arms:
            yield _Series(label, first.arms[Arm.COMPILED])


def _draw_series(axes: Axes, series: Sequence[_Series]) -> None:
    for colour, each in zip(_SERIES, series):
        steps_s = [step / 1e9 for step in each.steps.series.slice(0)]
        if each.steps.first_step_ns is not None:
            steps_s[0] = each.steps.first_step_ns / 1e9
        bins = list(_bins(len(steps_s)))
        x = [math.sqrt((start + 1) * stop) for start, stop in bins]
        parts = [steps_s[start:stop] for start, stop in bins]
        axes.fill_between(
            x, [min(part) for part in parts], [max(part) for part in parts], color=colour, alpha=0.2, lw=0
        )
        axes.plot(x, [median(part) for part in parts], color=colour, lw=1.5, label=each.label)
        steady = each.steps.steady_from
        if steady is not None and steady < len(steps_s):
            level = median(steps_s[steady : steady + 20])
            axes.plot([steady + 1], [level], "o", color=colour, ms=5)
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="time of one step")
    _format(axes)


def _bins(steps: int) -> Iterator[tuple[int, int]]:
    """[start, stop) of at most _POINTS bins, each about the same share of a logarithmic axis."""
    edges = {0, steps}
    edges |= {min(steps, round(steps ** (point / _POINTS))) for point in range(_POINTS + 1)}
    ordered = sorted(edges)
    return pairwise(ordered)


# ---------------------------------------------------------------- total time


def _starts(run: ReportedRun) -> Starts:
    return run.state.run.spec.plan.starts if run.state.run is not None else ONE_COLD_START


def _draw_totals(axes: Axes, run: ReportedRun, results: Sequence[ModeResult]) -> None:
    steps = _shown_steps(run)
    eager = next(rows for each in results if (rows := total_times(each, _starts(run), steps)))
    axes.plot(steps, [row.eager_s for row in eager], color=_SERIES[0], lw=1.5, label="eager")
    for colour, judged in zip(_SERIES[1:], run.verdict.modes):
        rows = total_times(judged.result, _starts(run), steps)
        if not rows:
            continue
        axes.fill_between(
            steps,
            [row.compiled_lo_s for row in rows],
            [row.compiled_hi_s for row in rows],
            color=colour,
            alpha=0.2,
            lw=0,
        )
        axes.plot(steps, [row.compiled_s for row in rows], color=colour, lw=1.5, label=judged.result.mode.value)
        found, eager_ms = judged.planned_break_even, judged.result.eager_mean_ms
        if found is not None and found.steps and eager_ms is not None and found.steps <= steps[-1]:
            axes.plot([found.steps], [found.steps * eager_ms / 1e3], "o", color=colour, ms=6)
    planned = run.verdict.planned_steps
    if planned is not None:
        axes.axvline(planned, color=_DIM, lw=1, ls=":", label="assumed plan" if run.verdict.assumed_plan else "plan")
    axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="total time")
    _format(axes)


def _shown_steps(run: ReportedRun) -> list[float]:
    """From well before the first break-even to beyond the plan, evenly on a logarithmic axis."""
    found = [judged.planned_break_even for judged in run.verdict.modes]
    known = [each.steps for each in found if each is not None and each.steps]
    marks = [*known, *([run.verdict.planned_steps] if run.verdict.planned_steps else [])] or [1e4]
    low, high = math.log10(max(1.0, min(marks) / 30)), math.log10(3 * max(marks))
    return [10 ** (low + (high - low) * i / 80) for i in range(81)]


# ---------------------------------------------------------------- compile time


def _draw_compile(axes: Axes, results: Sequence[ModeResult]) -> None:
    bars = [(f"{each.mode.value}\nforward", each.forward_compile_s) for each in results]
    bars += [(f"{each.mode.value}\nbackward", each.backward_compile_s) for each in results]
    bars = [(label, parts) for label, parts in bars if parts][::-1]
    left = [0.0] * len(bars)
    for colour, part in zip(_SERIES, CompilePart):
        widths = [parts.get(part, 0.0) for _, parts in bars]
        if any(widths):
            axes.barh([label for label, _ in bars], widths, left=left, height=0.6, color=colour, label=part.value)
            left = [start + width for start, width in zip(left, widths)]
    for row, total in enumerate(left):
        axes.annotate(duration(total), (total, row), xytext=(4, 0), textcoords="offset points", va="center")
    axes.margins(x=0.16)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("seconds")


def _format(axes: Axes) -> None:
    """Steps and times as people say them, on logarithmic axes."""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _round(count(value))))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(FixedLocator([time for time in _ROUND_TIMES_S if low <= time <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_time(value)))


_ROUND_TIMES_S = [10.0**power for power in range(-9, 2)]
_ROUND_TIMES_S += [60, 600, 3_600, 36_000, *(86_400 * 10.0**power for power in range(8))]


def _round_time(seconds: float) -> str:
    for unit_s, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= unit_s:
            return f"{seconds / unit_s:,.0f} {unit}"
    return _round(duration(seconds))


def _round(text: str) -> str:
    """`10.0 ms` is `10 ms`."""
    return re.sub(r"\.0+(?= )", "", text)

"""What the compiler does now: frame, graph and stage with ticking seconds, and what it has done so far."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

from rich.cells import cell_len
from textual.content import Content

from tcompile_tui.core import events as ev
from tcompile_tui.core.compile_log import CompileLog, FrameState, OpenStage
from tcompile_tui.core.silence import silence_text
from tcompile_tui.core.spec import Phase
from tcompile_tui.core.state import ProcessState, RunState
from tcompile_tui.core.units import MISSING, count, duration, plural
from tcompile_tui.ui.widgets.literal import one_line
from tcompile_tui.ui.widgets.live_panel import DIM, LivePanel, cut, spread, ticking
from tcompile_tui.ui.widgets.run_title import activity, latest_process, process_name

_COUNTS_WIDTH = 30
_COUNTS_BESIDE_FROM = 74
_WIDEST_TREE = 72
_SECONDS_WIDTH = 11
_SHORTEST_NAME = 8
_MOST_NEWS = 2
_SPENT_WIDTH = 27  # a stage and its seconds
_WARNING = "bold $warning"
_UNBROKEN = "\xa0"


class CompilePanel(LivePanel):
    """A tree at the left, counts at the right, the newest breaks and recompiles below the tree."""

    def heading(self, state: RunState) -> str:
        process = compiling_process(state)
        return f"compiler: {process_name(process)}" if process is not None else "compiler"

    def lines(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        counts = list(_counts(compiling_process(state)))
        if width >= _COUNTS_BESIDE_FROM:
            left = min(_WIDEST_TREE, width - _COUNTS_WIDTH - 3)
            tree = self._tree(state, now_s, left, height)
            return _beside(tree, _in_two_columns(counts), left, height, "|" if self.ascii_only else "│")
        summary = [self._summary(counts, width)] if height > 2 else []
        return [*self._tree(state, now_s, width, height - len(summary)), *summary]

    # ------------------------------------------------------------ the tree

    def _tree(self, state: RunState, now_s: float, width: int, height: int) -> list[Content]:
        process = compiling_process(state)
        log = process.compile if process is not None else CompileLog()
        told = _news(state, log)
        silence = silence_text(state, now_s)
        news = [self._cut(text, width, style) for text, style in (*told, *([(silence, DIM)] if silence else []))]
        news = news[-_MOST_NEWS if height > 4 else -1 :] if height > 2 else []
        room = height - len(news)
        frame = log.current_frame
        if process is None or (not log.current_stages and not log.frames):
            lines = self._waiting(state, now_s, width)
        elif log.current_stages:
            lines = self._working(log, frame, now_s, width, room)
        else:
            lines = []
        done = [f for f in islice(reversed(log.frames.values()), max(0, room - len(lines))) if f is not frame]
        for position, old in enumerate(done):
            lines.append(self._frame_done(old, width))
            if position == 0 and frame is None and old.graphs:
                lines.append(self._branch(1, _graph_text(old), "", width))
        if frame is None and log.frames:
            lines += _spent_by_stage(log, width)
        return [*lines[:room], *news]

    def _waiting(self, state: RunState, now_s: float, width: int) -> list[Content]:
        process = latest_process(state)
        if process is None or not process.running:
            return [Content.styled("between two processes", DIM)]
        line = spread(Content(activity(process)), ticking(now_s - process.started_s), width)
        if process.phase is Phase.EAGER:
            return [line, Content.styled(cut("eager runs first, without the compiler", width, self.ascii_only), DIM)]
        return [line]

    def _working(
        self, log: CompileLog, frame: FrameState | None, now_s: float, width: int, height: int
    ) -> list[Content]:
        lines = []
        if frame is not None:
            seconds = ticking(now_s - frame.started_s)
            lines.append(spread(self._frame_name(frame, width - len(seconds) - 1), seconds, width, "bold"))
            if frame.graphs and height > 2:
                lines.append(self._branch(1, _graph_text(frame), "", width))
        stages = _distinct(log.current_stages)
        depth = len(lines)
        rows = max(1, height - depth)
        joined = max(0, len(stages) - rows) + 1
        groups = [stages[:joined], *([stage] for stage in stages[joined:])] if stages else []
        for level, group in enumerate(groups):
            innermost = level == len(groups) - 1
            group, text = self._chain(group, width - 2 * (depth + level) - _SECONDS_WIDTH)
            since_s = group[-1 if innermost else 0].since_s
            if group[-1].detail:
                text += f"  {one_line(group[-1].detail, self.ascii_only)}"
            lines.append(self._branch(depth + level, text, ticking(now_s - since_s), width, innermost))
        return lines

    def _branch(self, depth: int, text: str, seconds: str, width: int, strong: bool = False) -> Content:
        twig = "  " * max(0, depth - 1) + (("`- " if self.ascii_only else "└ ") if depth else "")
        room = width - len(twig) - len(seconds) - 1
        words = cut(text, room, self.ascii_only)
        line = Content.assemble((twig, DIM), (words, "bold $accent" if strong else ""))
        return spread(line, seconds, width, "bold $accent" if strong else DIM) if seconds else line

    def _chain(self, stages: list[OpenStage], width: int) -> tuple[list[OpenStage], str]:
        """Nested stages in a line; of too many the inner ones, which say more."""
        mark = ""
        while True:
            text = mark + " > ".join(stage.stage.value for stage in stages)
            if len(stages) == 1 or len(text) <= width:
                return stages, text
            stages, mark = stages[1:], ".. > " if self.ascii_only else "… > "

    def _frame_name(self, frame: FrameState, width: int) -> Content:
        """`[0/0] forward  model.py:56`, the numbers as torch's own log writes them. Of a long file name the line
        number stays."""
        ident = f"[{frame.compile_id}] "
        name = one_line(frame.function or "a frame", self.ascii_only)
        file, line = _place(frame.file, frame.line)
        room = width - len(ident) - min(len(name), _SHORTEST_NAME) - 2
        place = cut(one_line(file, self.ascii_only), max(0, room - len(line)), self.ascii_only) + line
        name = cut(name, max(0, width - len(ident) - cell_len(place) - 2), self.ascii_only)
        return Content.assemble((ident, DIM), (name, "bold"), f"  {place}")

    def _frame_done(self, frame: FrameState, width: int) -> Content:
        if frame.ended_s is None:
            spent = ""
        elif frame.fail_type:
            spent = "runs eager"
        else:
            spent = duration(frame.ended_s - frame.started_s)
        line = self._frame_name(frame, width - len(spent) - 1)
        return spread(line, spent, width, _WARNING if frame.fail_type else DIM)

    # ------------------------------------------------------------ counts and news

    def _summary(self, counts: list[tuple[str, str]], width: int) -> Content:
        text = ""
        for label, value in counts:
            longer = f"{text}  {label} {value}" if text else f"{label} {value}"
            if len(longer) > width:
                break
            text = longer
        return Content.styled(text, DIM)

    def _cut(self, text: str, width: int, style: str) -> Content:
        return Content.styled(cut(one_line(text, self.ascii_only), width, self.ascii_only), style)


def compiling_process(state: RunState) -> ProcessState | None:
    """Whose compiler is told about: the present process, or the last one if the compiler has no part in this one."""
    latest = latest_process(state)
    if latest is not None and (latest.phase.compiles or latest.compile.compiler_active):
        return latest
    return next((p for p in reversed(state.processes.values()) if p.phase.compiles), None)


def _distinct(stages: tuple[OpenStage, ...]) -> list[OpenStage]:
    """Without the frame, which has a line of its own; of nested spans of one stage the outermost."""
    told: list[OpenStage] = []
    for stage in stages:
        if stage.stage is not ev.CompileStage.FRAME and all(stage.stage is not other.stage for other in told):
            told.append(stage)
    return told or list(stages[-1:])


def _place(file: str | None, line: int | None) -> tuple[str, str]:
    """The file's name and `:line`."""
    if file is None:
        return "an unknown place", ""
    return PurePath(file).name, f":{line}" if line is not None else ""


def _spent_by_stage(log: CompileLog, width: int) -> list[Content]:
    """Where the time went, in the order of the stages; an outer stage's seconds hold those of its inner ones."""
    spent = log.seconds_by_stage.items()
    order = list(ev.CompileStage)
    told = sorted((s for s in spent if s[0] is not ev.CompileStage.FRAME), key=lambda s: order.index(s[0]))
    columns = (width - 2 + 3) // (_SPENT_WIDTH + 3)
    if columns < 2:
        longest_first = sorted(told, key=lambda item: -item[1])
        told_whole = (f"{stage.value} {duration(seconds)}".replace(" ", _UNBROKEN) for stage, seconds in longest_first)
        lines = textwrap.wrap(", ".join(told_whole), max(8, width - 2))
        return [Content.styled(f"  {line.replace(_UNBROKEN, ' ').rstrip(',')}", DIM) for line in lines]
    cells = [f"{stage.value:<19}{duration(seconds):>8}" for stage, seconds in told]
    rows = -(-len(cells) // columns)
    return [Content.styled("  " + "   ".join(cells[row::rows]), DIM) for row in range(rows)]


def _graph_text(frame: FrameState) -> str:
    kernels = f", {plural(frame.kernels, 'kernel')}" if frame.kernels else ""
    return f"{plural(frame.graphs, 'graph')}, {plural(frame.ops, 'op')}{kernels}"


def _counts(process: ProcessState | None) -> Iterator[tuple[str, str]]:
    """What is not known is told apart from none: a torch without the trace gives no such records."""
    log = process.compile if process is not None else CompileLog()
    traced = process is not None and (process.facts is None or "trace" in process.facts.capabilities)

    def told(number: int) -> str:
        return count(number) if traced else MISSING

    yield "graphs", told(log.graphs)
    yield "ops", told(log.ops)
    yield "kernels", told(log.kernels)
    yield "breaks", told(sum(site.times for site in log.break_sites.values()))
    yield "recompiles", told(log.recompile_count)
    yield "cache hits", told(log.cache_count(ev.CacheOutcome.HIT))
    yield "misses", told(log.cache_count(ev.CacheOutcome.MISS))
    yield "autotunes", told(log.autotunes)
    yield "cudagraphs", told(log.cudagraph_recordings)
    yield "frames", told(len(log.frames))


def _in_two_columns(counts: list[tuple[str, str]]) -> list[Content]:
    half = -(-len(counts) // 2)
    pairs = zip(counts[:half], [*counts[half:], ("", "")])
    return [Content.assemble((f"{a:<10}", DIM), f"{x:>4}", (f"  {b:<10}", DIM), f"{y:>4}") for (a, x), (b, y) in pairs]


def _beside(left: list[Content], right: list[Content], width: int, height: int, upright: str) -> list[Content]:
    rows = min(height, max(len(left), len(right)))
    blank = Content("")
    return [
        Content.assemble(
            (left[row] if row < len(left) else blank).truncate(width, pad=True),
            (f" {upright} ", DIM),
            right[row] if row < len(right) else blank,
        )
        for row in range(rows)
    ]


def _news(state: RunState, log: CompileLog) -> list[tuple[str, str]]:
    """What a person should see as it happens, oldest first."""
    news: list[tuple[float, str]] = []
    for site in log.break_sites.values():
        first = site.first
        news.append((first.t_s, f"! graph break {''.join(_place(first.file, first.line))} {first.reason}"))
    if log.recompiles:
        latest = log.recompiles[-1]
        why = latest.failures[0].guard if latest.failures else ""
        news.append((latest.t_s, f"! recompiled {latest.compile_id or ''} {why}"))
    news += [(hit.t_s, f"! recompile limit {hit.text}") for hit in log.limit_hits[-1:]]
    news += [(n.t_s, f"! {n.text}") for n in state.notices if n.level is ev.Level.WARNING]
    return [(text, _WARNING) for _, text in sorted(news, key=lambda item: item[0])]

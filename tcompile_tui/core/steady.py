"""When is an arm steady? An online test on step times, told by the compiler which steps compiled.

Steady means shown to be level, not "no difference found": the two halves of the window must agree to within
TOLERANCE even at the unfavourable end of their confidence interval. A window that was accepted is watched for
some more steps before it counts, because a plateau of a slow clock or cache looks level too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from statistics import median

from tcompile_tui.core.events import Steadiness

TOLERANCE = 0.015
# Wider, because two arms in turn leave each other other caches, clocks and temperatures than one alone has.
HELD_TOLERANCE = 0.03
MIN_WINDOW_STEPS = 50
MIN_WINDOW_NS = 500_000_000
DEFAULT_BUDGET_NS = 20_000_000_000
# Cudagraphs warm up, record, and replay for the first time in the steps after a compile.
SKIPPED_AFTER_COMPILE = 3
_WATCH_STEPS = 150
_WATCH_NS = 1_000_000_000
_WATCH_EVERY = 25
_ONE_SIDED_95 = 1.645
_MEDIAN_ERROR = 1.2533  # standard error of a median, in those of a mean
_MAD_TO_SIGMA = 1.4826
_MAX_JUDGED = 512
_CLIP = 3.0


class SteadyGate:
    """Feed it an arm's blocks in order and read `state`, `start_index`, `bound` and `reason`.

    `start_index` counts the arm's steps from 0. `bound` is the largest change between the halves of the window
    that the data allow, as a share of the level; the last one tried where no window passed. A step costs about
    10 us, so this runs in the supervisor, never in the process that measures.
    """

    def __init__(self, budget_ns: int = DEFAULT_BUDGET_NS) -> None:
        self.state = Steadiness.WARMING_UP
        self.start_index: int | None = None
        self.bound: float | None = None
        self.reason = ""
        self._budget_ns = budget_ns
        self._spent_ns = 0
        self._window: list[int] = []
        self._window_ns = 0
        self._window_start = 0  # index of the window's first step in the arm's series
        self._skip = 1
        self._next_check = MIN_WINDOW_STEPS
        self._accepted: _Accepted | None = None

    def extend(self, steps_ns: Iterable[int], compiled_at: Collection[int] = ()) -> None:
        """Take in one block. `compiled_at` holds the positions in the block at which the compiler worked."""
        for position, step_ns in enumerate(steps_ns):
            if position in compiled_at:
                self._forget(len(self._window) + 1, "the compiler worked")
                self._skip = SKIPPED_AFTER_COMPILE
                self._spent_ns = 0
            else:
                self._push(step_ns)

    def _push(self, step_ns: int) -> None:
        if self._skip:
            self._skip -= 1
            self._window_start += 1
        else:
            self._spent_ns += step_ns
            self._window.append(step_ns)
            self._window_ns += step_ns
            if self._accepted is not None:
                self._watch(self._accepted)
            elif len(self._window) >= self._next_check:
                self._next_check = len(self._window) + max(5, len(self._window) // 20)
                self._check()
        if self.state is Steadiness.WARMING_UP and self._spent_ns >= self._budget_ns:
            self._give_up()

    def _forget(self, steps: int, reason: str) -> None:
        """Drop the oldest steps of the window and start over; `steps` may reach one past its end."""
        self._window_start += steps
        self._window = self._window[steps:]
        self._window_ns = sum(self._window)
        self._next_check = len(self._window) + MIN_WINDOW_STEPS
        self._accepted = None
        if self.state is not Steadiness.NOISE_LIMITED:
            self.state = Steadiness.WARMING_UP
        self.start_index, self.reason = None, reason

    def _give_up(self) -> None:
        """No level was found in the budget: only the paired ratio can be trusted."""
        self.state = Steadiness.NOISE_LIMITED
        self.start_index = self._window_start + len(self._window) // 2
        self.reason = "no level in the time allowed"

    # ------------------------------------------------------------ accepting a window

    def _check(self) -> None:
        window = self._window
        length = max(MIN_WINDOW_STEPS, len(window) // 2)
        judged = window[-length:]
        if sum(judged) < MIN_WINDOW_NS:
            return
        # Thinning bounds the cost; it can only widen the interval.
        step = -(-length // _MAX_JUDGED)
        self.bound, level = _judge(judged[::-step][::-1])
        if level is not None:
            start = self._extend_backwards(len(window) - length, length, level)
            self._accepted = _Accepted(
                start_index=self._window_start + start,
                at=len(window),
                at_ns=self._window_ns,
                level_ns=level,
                length=length,
            )

    def _extend_backwards(self, start: int, length: int, level: float) -> int:
        block = max(10, length // 4)
        while start >= block and abs(median(self._window[start - block : start]) / level - 1) <= TOLERANCE / 2:
            start -= block
        return start

    # ------------------------------------------------------------ watching it

    def _watch(self, accepted: _Accepted) -> None:
        since = len(self._window) - accepted.at
        watched_enough = since >= _WATCH_STEPS or self._window_ns - accepted.at_ns >= _WATCH_NS
        if since % _WATCH_EVERY and not (watched_enough and self.state is Steadiness.WARMING_UP):
            return
        recent = self._window[-min(since, max(MIN_WINDOW_STEPS, accepted.length // 4)) :]
        middle = median(recent)
        error = _MEDIAN_ERROR * _spread(recent, middle) / len(recent) ** 0.5 / accepted.level_ns
        if abs(middle / accepted.level_ns - 1) > TOLERANCE + _ONE_SIDED_95 * error:
            self._forget(len(self._window) - len(recent), "the level moved")
        elif watched_enough and self.state is Steadiness.WARMING_UP:
            self.state, self.start_index, self.reason = Steadiness.STEADY, accepted.start_index, ""


def level_held(window_ns: Sequence[int], later_block_ns: Sequence[float]) -> bool:
    """Did the level that the gate accepted last through the comparison? Slow steps leave the gate too few of them to
    outlast a long plateau, and pairs that are measured anyway watch on for nothing.

    `window_ns`: the accepted steps; `later_block_ns`: the same arm's level in each later block. Their second half is
    judged, so that a plateau that ended among them is seen.
    """
    recent = later_block_ns[len(later_block_ns) // 2 :]
    if not recent or not window_ns:
        return True
    level, middle = max(1.0, float(median(window_ns))), float(median(recent))
    error: float = _MEDIAN_ERROR * _spread(recent, middle) / len(recent) ** 0.5 / level
    return abs(middle / level - 1) <= HELD_TOLERANCE + _ONE_SIDED_95 * error


class _Accepted:
    """A window that passed, while it is watched."""

    __slots__ = ("at", "at_ns", "length", "level_ns", "start_index")

    def __init__(self, start_index: int, at: int, at_ns: int, level_ns: float, length: int) -> None:
        self.start_index, self.at, self.at_ns, self.level_ns, self.length = (
            start_index,
            at,
            at_ns,
            level_ns,
            length,
        )


def _judge(steps_ns: Sequence[int]) -> tuple[float, float | None]:
    """(largest change the data allow, the level if the window is level).

    Equivalence of the halves' medians, and the four quarters' medians together; errors from the deviation inside
    quarters, widened for autocorrelation.
    """
    quarter = len(steps_ns) // 4
    level = max(1.0, median(steps_ns))  # a broken clock may count 0
    quarters = [steps_ns[i * quarter : (i + 1) * quarter] for i in range(4)]
    middles = [median(part) for part in quarters]
    deviations = sorted(_spread(part, middle) for part, middle in zip(quarters, middles))
    deviation = (deviations[1] + deviations[2]) / 2
    r = _clipped_autocorrelation(steps_ns, level, deviation)
    error = _MEDIAN_ERROR * deviation * ((1 + r) / (1 - r)) ** 0.5 / quarter**0.5 * 2**0.5 / level
    half = len(steps_ns) // 2
    change = abs(median(steps_ns[:half]) - median(steps_ns[half:])) / level
    bound = change + _ONE_SIDED_95 * error / 2**0.5
    spread = (max(middles) - min(middles)) / level
    level_enough = bound <= TOLERANCE and spread <= TOLERANCE + _ONE_SIDED_95 * error
    return bound, level if level_enough else None


def _spread(values: Sequence[float], middle: float) -> float:
    """Robust standard deviation."""
    return _MAD_TO_SIGMA * median([abs(value - middle) for value in values])


def _clipped_autocorrelation(values: Sequence[int], level: float, deviation: float) -> float:
    """Lag-1, of values clipped at 3 deviations so that a single spike does not decide it."""
    scale = deviation or 1e-9
    clipped = [max(-_CLIP, min(_CLIP, (value - level) / scale)) for value in values]
    power = sum(value * value for value in clipped)
    if not power:
        return 0.0
    return max(0.0, min(0.95, sum(a * b for a, b in pairwise(clipped)) / power))

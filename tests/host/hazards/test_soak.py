"""The short form of tests/benchmarks/soak.py."""

from __future__ import annotations

from tests.benchmarks.soak import soak


def test_runs_in_a_row_leave_nothing_behind() -> None:
    before, after = soak(runs=8, settling=2, tell_every=0)
    assert after.more_than(before) == []

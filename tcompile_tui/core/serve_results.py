"""Serving: what one request waits for, from a server's first one on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcompile_tui.core.spec import Arm


@dataclass(frozen=True)
class Serving:
    """Of one mode. `first_s` are the first requests of a process: in eager, with empty compile caches (`cold`) and on
    those of an earlier process (`warm`); None where there was none. `over_slo` is the share of later requests that took
    longer than `slo_ms`; both None where nothing was asked for."""

    slo_ms: float | None
    first_eager_s: float | None
    first_cold_s: float | None
    first_warm_s: float | None
    over_slo: Mapping[Arm, float | None]


def share_over(latencies_ns: Sequence[int], slo_ms: float | None) -> float | None:
    """The share of requests that took longer."""
    if slo_ms is None or not latencies_ns:
        return None
    return sum(ns > slo_ms * 1e6 for ns in latencies_ns) / len(latencies_ns)


def serving_document(found: Serving) -> dict[str, object]:
    """For verdict.json."""
    return {
        "slo_ms": found.slo_ms,
        "first_request_s": {"eager": found.first_eager_s, "cold": found.first_cold_s, "warm": found.first_warm_s},
        "share_over_slo": {arm.value: found.over_slo.get(arm) for arm in Arm},
    }

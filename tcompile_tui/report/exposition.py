"""The Prometheus text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

_PREFIX = "tcompile_"

Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True)
class Metric:
    """One name with its samples, in base units (seconds, bytes, ratios). The name of a counter ends in `_total`."""

    name: str
    help: str
    samples: tuple[Sample, ...]
    type: Literal["gauge", "counter"] = "gauge"


def exposition(metrics: Iterable[Metric], target: str) -> str:
    """Every sample is labelled with the target. A metric without samples is left out: what is not known is not 0."""
    return "".join(f"{line}\n" for metric in metrics if metric.samples for line in _lines(metric, target))


def _lines(metric: Metric, target: str) -> Iterator[str]:
    name = f"{_PREFIX}{metric.name}"
    yield f"# HELP {name} {escaped_help(metric.help)}"
    yield f"# TYPE {name} {metric.type}"
    for labels, value in metric.samples:
        text = ",".join(f'{key}="{escaped_label(label)}"' for key, label in {"target": target, **labels}.items())
        yield f"{name}{{{text}}} {value!r}"


def escaped_label(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")

"""Numbers as people read them. A missing value is "n/a", never 0."""

from __future__ import annotations

import math

MISSING = "n/a"


def duration(seconds: float | None) -> str:
    """`820 ns`, `3.20 ms`, `12.4 s`, `4 min 05 s`, `3 h 12 min`, `9.5 days`."""
    if seconds is None or math.isnan(seconds):
        return MISSING
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if math.isinf(seconds):
        return "for ever"
    if seconds < 999.5e-9:
        return f"{seconds * 1e9:.0f} ns"
    if seconds < 999.5e-6:
        return f"{_three_digits(seconds * 1e6)} us"
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1e3)} ms"
    if seconds < 99.95:
        return f"{_three_digits(seconds)} s"
    if round(seconds) < 3600:
        return f"{round(seconds) // 60} min {round(seconds) % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{seconds / 86_400:.1f} days" if seconds < 365 * 86_400 else f"{seconds / (365 * 86_400):,.1f} years"


def milliseconds(nanoseconds: float | None) -> str:
    """A step time: `12.3 ms`, `0.042 ms`; from 10 s on as a duration."""
    if nanoseconds is None:
        return MISSING
    return f"{_three_digits(nanoseconds / 1e6)} ms" if nanoseconds < 1e10 else duration(nanoseconds / 1e9)


def count(number: float | None) -> str:
    """`950`, `6,750`, `1.2 million`."""
    if number is None:
        return MISSING
    if number < 999_999.5:
        return f"{number:,.0f}"
    for unit, size in (("million", 1e6), ("billion", 1e9), ("trillion", 1e12)):
        if number < 999.5 * size:
            return f"{_three_digits(number / size)} {unit}"
    return f"{number:.2g}"


def size(number_of_bytes: float | None) -> str:
    """Powers of 1024: `512 B`, `1.5 KiB`, `23.4 GiB`."""
    if number_of_bytes is None:
        return MISSING
    value = float(number_of_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1023.5:
            return f"{value:.0f} B" if unit == "B" else f"{_three_digits(value)} {unit}"
        value /= 1024
    return f"{_three_digits(value)} TiB"


def joules(value: float | None) -> str:
    """`0.82 mJ`, `12.3 J`."""
    if value is None:
        return MISSING
    for unit, scale in (("J", 1.0), ("mJ", 1e-3)):
        if value >= 0.9995 * scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(1e6 * value)} uJ"


def ratio(value: float | None) -> str:
    """A speedup: `1.71x`, `1.034x` near one, where the third digit counts."""
    if value is None:
        return MISSING
    if 0.0995 <= value < 1.1:
        return f"{value:.3f}x"
    return f"{_three_digits(value)}x"


def percent(share: float | None) -> str:
    """0.123 is `12.3 %`."""
    if share is None:
        return MISSING
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def plural(number: int, noun: str) -> str:
    """`1 graph break`, `3 graph breaks`, `2 passes`."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{number:,} {noun}{ending}"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if magnitude >= 0.9995 else f"{value:.3g}"

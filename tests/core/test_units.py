"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.core.units import count, duration, milliseconds, percent, plural, ratio, size

FORMATS = (duration, milliseconds, count, size, ratio, percent)
every_format = pytest.mark.parametrize("show", FORMATS)
Format = Callable[[float | None], str]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (820e-9, "820 ns"),
        (999.6e-9, "1.00 us"),
        (12.34e-6, "12.3 us"),
        (999.6e-6, "1.00 ms"),
        (3.2e-3, "3.20 ms"),
        (0.9996, "1.00 s"),
        (12.4, "12.4 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (245.0, "4 min 05 s"),
        (3599.6, "1 h 00 min"),
        (11_520.0, "3 h 12 min"),
        (86_400.0, "24 h 00 min"),
        (9.5 * 86_400, "9.5 days"),
        (1e9, "31.7 years"),
        (-3.2e-3, "-3.20 ms"),
        (float("inf"), "for ever"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(42_000, "0.042 ms"), (12_345_678, "12.3 ms"), (1.5e9, "1,500 ms"), (12.4e9, "12.4 s")],
)
def test_milliseconds(nanoseconds: float, text: str) -> None:
    assert milliseconds(nanoseconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (950, "950"),
        (6_750.4, "6,750"),
        (999_999.4, "999,999"),
        (999_999.6, "1.00 million"),
        (1_234_567, "1.23 million"),
        (999_600_000, "1.00 billion"),
        (5e12, "5.00 trillion"),
    ],
)
def test_count(number: float, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number_of_bytes", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023.6, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (23.4 * 2**30, "23.4 GiB"),
        (-2048, "-2.00 KiB"),
        (3 * 2**50, "3,072 TiB"),
    ],
)
def test_size(number_of_bytes: float, text: str) -> None:
    assert size(number_of_bytes) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.7123, "1.71x"), (1.0343, "1.034x"), (0.997, "0.997x"), (0.5, "0.500x"), (12.34, "12.3x")]
)
def test_ratio(value: float, text: str) -> None:
    assert ratio(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0423, "4.2 %"), (0.0996, "10 %"), (0.4978, "50 %"), (-0.031, "-3.1 %"), (0.0, "0.0 %")]
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "graph break", "1 graph break"),
        (0, "graph break", "0 graph breaks"),
        (2, "pass", "2 passes"),
        (3, "match", "3 matches"),
        (1_200, "step", "1,200 steps"),
    ],
)
def test_plural(number: int, noun: str, text: str) -> None:
    assert plural(number, noun) == text


@every_format
def test_a_missing_value_is_not_zero(show: Format) -> None:
    assert show(None) == "n/a"
    assert show(0.0) != "n/a"


@every_format
@given(number=st.floats(allow_nan=True, allow_infinity=True))
def test_any_number_gives_one_line(show: Format, number: float) -> None:
    text = show(number)
    assert text.strip() == text
    assert text.isprintable()
    assert text


@every_format
@given(number=st.integers(min_value=-(2**63), max_value=2**63))
def test_any_whole_number_gives_one_line(show: Format, number: int) -> None:
    assert show(number).isprintable()


@given(seconds=st.floats(min_value=1e-9, max_value=3.1e7))
def test_a_duration_stays_short(seconds: float) -> None:
    assert len(duration(seconds)) <= 12
    assert not duration(seconds).startswith(("1,000", "1000"))

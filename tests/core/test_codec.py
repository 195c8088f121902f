"""Every record survives the wire; what is no record is refused, never trusted."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.events import EVENT_TYPES, Block, BlockRole, Event, encode_event
from tcompile_tui.core.spec import Arm

each_type = pytest.mark.parametrize("event_type", EVENT_TYPES, ids=lambda event_type: event_type.kind)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(),  # NaN and the infinities too
    str: st.text(max_size=20) | st.sampled_from(["null", "nan", "1", "true", "\x00\n\u2028"]),
}
_TIME = st.integers(0, 2**63 - 1)
_BLOCK_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "steps": st.integers(0, 4096),
    "step_ns": st.lists(_TIME, max_size=3).map(tuple),
    "summary_ns": st.none() | st.tuples(_TIME, _TIME, _TIME, _TIME),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a record's field."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple and args[-1] is ...:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin in (Union, UnionType):
        return st.one_of(*map(values, args))
    if is_dataclass(hint):
        return records(hint)
    return _SCALARS[hint] if hint in _SCALARS else st.from_type(hint)


def records(record_type: Any, required_only: bool = False) -> st.SearchStrategy[Any]:
    """Instances of a dataclass of the schema."""
    hints = get_type_hints(record_type)
    names = [f.name for f in fields(record_type) if not required_only or f.default is MISSING]
    own = _BLOCK_FIELDS if record_type is Block else {}
    return st.builds(record_type, **{name: own[name] if name in own else values(hints[name]) for name in names})


@each_type
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_record_comes_back_as_it_was(event_type: type[Event], data: st.DataObject) -> None:
    event = data.draw(records(event_type))
    line = encode_event(event)
    assert b"\n" not in line
    decoded = decode_event(line)
    assert type(decoded) is event_type
    assert repr(decoded) == repr(event)  # by repr, since NaN does not equal itself
    assert decoded is not None
    assert encode_event(decoded) == line


@each_type
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_records_of_another_version_are_read(event_type: type[Event], data: st.DataObject) -> None:
    """An older program left fields out that have a default, a newer one adds fields."""
    event = data.draw(records(event_type, required_only=True))
    body = json.loads(encode_event(event))
    required = {f.name for f in fields(event_type) if f.default is MISSING}
    older = {name: value for name, value in body.items() if name in required | {"kind"}}
    newer = {**body, "v": 99, "a_field_of_tomorrow": [1]}
    for version in (older, newer):
        assert repr(decode_event(json.dumps(version).encode())) == repr(event)


def test_the_list_of_types_is_complete() -> None:
    def below(event_type: type[Event]) -> Iterator[type[Event]]:
        for child in event_type.__subclasses__():
            yield child
            yield from below(child)

    assert set(EVENT_TYPES) == {found for found in below(Event) if found.__module__.startswith("tcompile_tui.")}
    kinds = [event_type.kind for event_type in EVENT_TYPES]
    assert all(kinds)
    assert len(set(kinds)) == len(kinds) == len(EVENT_TYPES)
    assert all("kind" in vars(event_type) for event_type in EVENT_TYPES)


def test_numbers_that_json_lacks_and_names_that_utf8_lacks() -> None:
    sample = ev.HostSample(cpu_percent=math.nan, load_1m=-math.inf, memory_used_bytes=2**70, memory_total_bytes=0)
    decoded = decode_event(encode_event(sample))
    assert isinstance(decoded, ev.HostSample)
    assert math.isnan(decoded.cpu_percent)
    assert (decoded.load_1m, decoded.memory_used_bytes) == (-math.inf, 2**70)

    named = ev.Notice(level=ev.Level.INFO, code="file", text="caf\udce9/模型.py")
    assert decode_event(encode_event(named)) == ev.Notice(level=ev.Level.INFO, code="file", text="caf\\udce9/模型.py")


def test_a_kind_of_a_newer_program_is_no_error() -> None:
    assert decode_event(b'{"v":2,"kind":"hologram","depth":3}') is None
    assert decode_event(b'{"kind":""}') is None


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\n", b"{", b"null", b"[]", b"7", b'"notice"', b"\xff\xfe", b"{}", b'{"kind":null}',
        b'{"kind":["notice"]}',
        b'{"kind":"notice"}', b'{"kind":"notice","level":"loud","code":"a","text":"b"}',
        b'{"kind":"notice","level":"info","code":"a","text":7}',
        b'{"kind":"notice","level":"info","code":"a","text":"\xff"}',
        b'{"kind":"notice","level":"info","code":"a","text":"b"} trailing',
        b'{"kind":"worker_done","records_dropped":' + b"9" * 5000 + b"}",
        b'{"kind":"worker_done","records_dropped":1.5}', b'{"kind":"worker_done","t_s":1e999}',
        b'{"kind":"worker_done","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda line: repr(line[:60]),
)  # fmt: skip
def test_what_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(BadRecordError) as refused:
        decode_event(line)
    assert len(str(refused.value).splitlines()) == 1


@given(st.binary(max_size=80), st.booleans())
def test_garbage_raises_nothing_else(garbage: bytes, in_a_record: bool) -> None:
    with contextlib.suppress(BadRecordError):
        assert decode_event(b'{"kind":"notice",' + garbage + b"}" if in_a_record else garbage) is None


WHOLE = Block(arm=Arm.EAGER, role=BlockRole.PAIR, first_index=0, steps=3, step_ns=(1, 2, 3), wall_ns=6)


@pytest.mark.parametrize(
    "forged",
    [
        replace(WHOLE, steps=10**15, step_ns=(), summary_ns=(1, 2, 3, 6)),
        replace(WHOLE, steps=-1),
        replace(WHOLE, step_ns=(1, 2, 2**63)),
        replace(WHOLE, step_ns=(1, -2, 3)),
        replace(WHOLE, step_ns=(), summary_ns=(1, 2, 2**64, 6)),
    ],
)
def test_a_forged_block_is_refused_before_it_can_fill_memory(forged: Block) -> None:
    assert decode_event(encode_event(WHOLE)) == WHOLE
    with pytest.raises(BadRecordError):
        decode_event(encode_event(forged))

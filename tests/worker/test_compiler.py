"""The compiler's signals, as its loggers give them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tcompile_tui.core import events as ev
from tcompile_tui.worker import compiler
from tcompile_tui.worker.artifacts import save_artifacts
from tcompile_tui.worker.compiler import CompileSignals, assert_private_caches, disabled_by
from tcompile_tui.worker.failures import StageError

pytestmark = pytest.mark.xdist_group("torch")


def _told(metadata: dict[str, Any], payload: str | None = None) -> list[ev.Event]:
    """What one structured record becomes."""
    sent: list[ev.Event] = []
    signals = CompileSignals(sent.append)
    record = logging.makeLogRecord({"metadata": metadata, "payload": payload})
    assert signals.handle(record)
    assert signals.summary().handler_errors == 0
    return sent


def test_the_recompile_limit_is_told_once_and_names_its_guard() -> None:
    metrics = {
        "compile_id": "0/8", "fail_type": "Unsupported", "fail_reason": "Dynamo recompile limit exceeded\n  Why",
        "recompile_reason": "0/7: self.step == 7          # self.step += 1  # net.py:11 in forward (HINT: x)",
    }  # fmt: skip
    compiled, limit = _told({"compilation_metrics": metrics, "frame_id": 0, "frame_compile_id": 8})
    assert isinstance(compiled, ev.FrameCompiled) and compiled.fail_type == "Unsupported"
    assert limit == ev.RecompileLimitHit(compile_id="0/8", text="self.step == 7")


def test_the_recompile_limit_of_torch_2_6_names_the_guard_that_was_told_before() -> None:
    sent: list[ev.Event] = []
    signals = CompileSignals(sent.append)
    metrics = {"compile_id": "0/8", "fail_type": "RecompileLimitExceeded", "fail_reason": "cache_size_limit reached"}
    for metadata, payload in (
        ({"artifact": {"name": "recompile_reasons"}}, "[\"0/7: L['self'].step == 7\", \"0/6: L['self'].step == 6\"]"),
        ({"compilation_metrics": metrics}, None),
    ):
        signals.handle(logging.makeLogRecord({"metadata": metadata, "payload": payload}))
    assert sent[-1] == ev.RecompileLimitHit(compile_id="0/8", text="L['self'].step == 7")


def test_a_frame_without_guards_after_its_break_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before torch 2.11 nothing else tells it."""
    sent: list[ev.Event] = []
    signals = CompileSignals(sent.append)

    def hear(metadata: dict[str, Any], payload: str | None = None) -> None:
        signals.handle(logging.makeLogRecord({"metadata": metadata, "payload": payload}))

    for frame, guards in enumerate((None, 7)):
        place = {"frame_id": frame, "frame_compile_id": 0}
        hear({"artifact": {"name": "dynamo_graph_break_reason"}, **place}, "Reason: builtin: print")
        hear({"compilation_metrics": {"compile_id": f"{frame}/0", "guard_count": guards}, **place})
    hear({"compilation_metrics": {"compile_id": "2/0"}, "frame_id": 2, "frame_compile_id": 0})
    outcomes = [(event.fail_type, event.fail_reason) for event in sent if isinstance(event, ev.FrameCompiled)]
    assert outcomes == [("SkipFrame", "builtin: print"), (None, None), (None, None)]
    monkeypatch.setattr("tcompile_tui.worker.compiler._counters", lambda name: {"total": 3, "ok": 3})
    assert signals.summary().frames_compiled == 2, "that torch counts a dropped frame as compiled"


@pytest.mark.parametrize(
    ("metadata", "payload", "event"),
    [
        ({"artifact": {"name": "fx_graph_cache_hit"}, "frame_id": 1, "frame_compile_id": 2}, "{}",
         ev.CacheLookup(cache=ev.CacheKind.FX, outcome=ev.CacheOutcome.HIT, compile_id="1/2")),
        ({"chromium_event": {}}, '{"name":"autograd_cache_bypass","ph":"i","args": {"cache_bypass_reason": "hook"}}',
         ev.CacheLookup(cache=ev.CacheKind.AOT_AUTOGRAD, outcome=ev.CacheOutcome.BYPASS, reason="hook")),
        ({"chromium_event": {}}, '{"name": "dynamo", "ph": "B", "args": {"compile_id": "3/0"}}',
         ev.CompileSpan(begins=True, stage=ev.CompileStage.FRAME, stage_name="dynamo", compile_id="3/0")),
    ],
)  # fmt: skip
def test_records_become_events(metadata: dict[str, Any], payload: str, event: ev.Event) -> None:
    assert _told(metadata, payload) == [event]


@pytest.mark.parametrize(
    ("metadata", "payload"),
    [
        ({"artifact": {"name": "fx_graph_cache_hash"}}, "{}"),
        ({"chromium_event": {}}, '{"name": "pass.noise", "ph": "B"}'),
        ({"something_new": {"x": 1}}, None),
        ({}, None),
    ],
)
def test_noise_and_new_kinds_are_left_out(metadata: dict[str, Any], payload: str | None) -> None:
    assert _told(metadata, payload) == []


def test_a_record_that_cannot_be_read_never_reaches_the_compile() -> None:
    sent: list[ev.Event] = []
    signals = CompileSignals(sent.append)
    signals.handle(logging.makeLogRecord({"metadata": {"chromium_event": {}}, "payload": "no json"}))
    assert sent == [] and signals.summary().handler_errors == 1


@pytest.mark.parametrize("variable", ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
def test_a_variable_that_switches_compiling_off_is_named(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "0")
    assert disabled_by() is None
    monkeypatch.setenv(variable, "1")
    assert variable in (disabled_by() or "")


def test_caches_outside_the_private_folder_are_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "users"))
    with pytest.raises(StageError, match="lies outside the private folder") as caught:
        assert_private_caches(str(tmp_path / "private"))
    assert caught.value.fault == "program"


# ---------------------------------------------------------------- portable caches


@pytest.mark.parametrize(
    "info",
    [
        SimpleNamespace(artifacts={"pgo": ["a"], "inductor": ["b", "c"]}),
        SimpleNamespace(pgo_artifacts=["a"], inductor_artifacts=["b", "c"], autotune_artifacts=[]),
    ],
)
def test_entries_are_counted_as_any_version_tells_them(
    info: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: (b"12345", info))
    saved = save_artifacts(str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b"12345" and saved.bytes == 5
    assert [(count.kind, count.entries) for count in saved.counts] == [("inductor", 2), ("pgo", 1)]


def test_a_torch_without_portable_caches_and_a_process_without_any_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: None)
    with pytest.raises(StageError, match="nothing was compiled, or its caches are off"):
        save_artifacts(str(tmp_path / "file"))
    monkeypatch.delattr(torch.compiler, "save_cache_artifacts")
    with pytest.raises(StageError, match=r"has no portable compile caches .*use torch 2\.7 or newer") as told:
        save_artifacts(str(tmp_path / "file"))
    assert told.value.fault == "environment" and not (tmp_path / "file").exists()


def test_a_probe_with_fullgraph_names_the_first_place_in_the_way() -> None:
    def printing(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print("break")
        return y.cos()

    def plain(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + int(x.sum().item())

    def probe(function: Callable[[torch.Tensor], torch.Tensor]) -> ev.FullgraphProbed:
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        return compiler.probe_fullgraph(lambda: compiled(torch.ones(3)))

    assert probe(plain).holds
    found = probe(printing)
    assert not found.holds and found.error_type == "Unsupported" and "print" in found.message
    assert found.file == __file__ and found.line == printing.__code__.co_firstlineno + 2
    with pytest.raises(ZeroDivisionError):
        compiler.probe_fullgraph(lambda: 1 // 0)

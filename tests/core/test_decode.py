"""Decoding in the spec, in the figures and in the verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.decode_results import decode_document, decode_speed
from tcompile_tui.core.shape_spec import ShapeSequence
from tcompile_tui.core.spec import Arm, Mode, RunSpec, SpecError, Task, command_line, parse_target
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.core.task_spec import with_task
from tcompile_tui.core.verdict import decide
from tcompile_tui.report.text import verdict_text

from .streams import Compiled, Process, both, eager_process, replay

GROWING = Mode("cache=growing")
DECODE = RunSpec(parse_target("transformers:gpt2"), task=Task.DECODE)


def prefills(arm: Arm, *ms: float, new_tokens: int = 10) -> ev.PrefillsTimed:
    step_ns = tuple(int(each * 1e6) for each in ms)
    return ev.PrefillsTimed(arm=arm, sequences=4, prompt_tokens=128, new_tokens=new_tokens, step_ns=step_ns)


def test_a_growing_cache_is_compared_unasked() -> None:
    spec = with_task(DECODE)
    assert spec.modes == (Mode.DEFAULT, GROWING) and with_task(spec) == spec
    assert command_line(spec) == "tcompile-tui run transformers:gpt2 --task decode --arm cache=growing"
    asked = replace(DECODE, modes=(Mode.DEFAULT, Mode("dynamic=true,cache=growing")), new_tokens=64)
    assert with_task(asked) == asked and "--new-tokens 64" in command_line(asked)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task": Task.INFER, "modes": (Mode.DEFAULT, GROWING)}, "--arm cache=growing is for --task decode"),
        ({"task": None, "new_tokens": 5}, "--new-tokens 5 is for --task decode"),
        ({"step": StepSpec(own=FileFunction("a.py", "fn"))}, "is no generation"),
        ({"shapes": ShapeSequence(("B",), ((1,), (2,)), (0, 1), ("--dim", "B=1,2"))}, "the cache makes the shapes"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        with_task(replace(DECODE, **changes))  # type: ignore[arg-type]


def test_tokens_a_second_are_those_after_the_prefill() -> None:
    timed = {Arm.EAGER: prefills(Arm.EAGER, 9.0, 10.0, 30.0), Arm.COMPILED: prefills(Arm.COMPILED, 5.0)}
    found = decode_speed(timed, {Arm.EAGER: 30.0, Arm.COMPILED: 15.0})
    assert found is not None and found.token_ms == {Arm.EAGER: 2.0, Arm.COMPILED: 1.0}
    assert found.tokens_per_s(Arm.COMPILED) == 4_000.0
    assert found.text(Arm.EAGER) == "2,000 tokens/s (prefill 10.0 ms, 2.00 ms a token)"


@pytest.mark.parametrize("generation_ms", [None, 4.0])
def test_a_token_s_time_that_is_not_known_is_none(generation_ms: float | None) -> None:
    timed = {arm: prefills(arm, 5.0) for arm in Arm}
    found = decode_speed(timed, dict.fromkeys(Arm, generation_ms))
    assert found is not None and found.tokens_per_s(Arm.EAGER) is None
    assert decode_document(found)["tokens_per_s"] == {"eager": None, "compiled": None}
    assert "n/a tokens/s" in found.text(Arm.EAGER)
    assert decode_speed({Arm.EAGER: timed[Arm.EAGER]}, dict.fromkeys(Arm, 1.0)) is None


def decoded(mode: Mode, speedup: float, recompiles: int = 0) -> tuple[Process, Process]:
    cold, warm = both(Compiled(mode, speedup=speedup, recompiles=recompiles))
    told = [prefills(Arm.EAGER, 1.0), prefills(Arm.COMPILED, 0.8)]
    return cold, [*warm[:-2], *told, *warm[-2:]]


def test_the_verdict_speaks_of_tokens_and_of_the_cache() -> None:
    runs = (*decoded(Mode.DEFAULT, 2.0), *decoded(GROWING, 1.2, recompiles=3))
    state = replay(eager_process(), *runs, modes=(Mode.DEFAULT, GROWING))
    verdict = decide(state)
    text = verdict_text(state, verdict)
    assert "4 sequences, a prompt of 128 tokens, then 10" in text and "3 recompiles on the way" in text
    static = 'model.generation_config.cache_implementation = "static"; model.compile()'
    assert verdict.paste_line == static
    assert verdict.line_for(verdict.modes[1]) == "model.compile()"
    cause = next(finding for finding in verdict.findings if finding.id == "growing-cache")
    assert "3 recompiles" in cause.title and "static" in cause.advice

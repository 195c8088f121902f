"""What `--arm` says, its name, and the lines that say the same to torch."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from tcompile_tui.core import events as ev
from tcompile_tui.core.codec import BadRecordError, decode_event
from tcompile_tui.core.compile_options import (
    TORCH_MODES,
    CompiledBlocks,
    CompileOptions,
    KeyValueCache,
    Regions,
    parse_arm,
)
from tcompile_tui.core.compile_text import compile_lines
from tcompile_tui.core.events import encode_event
from tcompile_tui.core.spec import Mode, Phase, RunSpec, SpecError, command_line, order_modes, parse_target
from tcompile_tui.core.verdict import decide

from .streams import Compiled, Process, both, eager_process, replay

BLOCKS = CompiledBlocks("Block", 6, "layers")
REGIONAL = Mode("regional")

keys = st.from_regex(r"[a-z][a-z_]{0,8}(\.[a-z]{1,5})?", fullmatch=True).filter(
    lambda key: key not in ("mode", "dynamic", "cache", "regional", "nested", "fullgraph", "backend")
)
values = (
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["ATEN", "a.b"])
)
options = st.builds(
    CompileOptions,
    st.sampled_from(TORCH_MODES),
    st.sampled_from([None, True, False]),
    st.none() | st.sampled_from(list(Regions)),
    st.none() | st.sampled_from(["Block", "Outer.Inner"]),
    st.none() | st.sampled_from(list(KeyValueCache)),
    st.dictionaries(keys, values, max_size=3).map(lambda found: tuple(sorted(found.items()))),
).map(lambda found: found if found.regions else replace(found, block=None))


@settings(max_examples=50)
@given(options)
def test_a_name_means_the_same_options(found: CompileOptions) -> None:
    assert parse_arm(found.label) == found
    mode = Mode(found.label)
    assert mode is Mode(mode.value) and mode.options == found and mode.is_plain == (mode in list(Mode))


@settings(max_examples=50)
@given(options)
def test_what_is_written_for_torch_is_python(found: CompileOptions) -> None:
    for line in compile_lines(found, wrapped=False, blocks=BLOCKS if found.regions else None):
        compile(line, "paste", "exec")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("mode=max-autotune,dynamic=true", "max-autotune,dynamic=true"),
        (" dynamic = True , max-autotune ", "max-autotune,dynamic=true"),
        ("regional=Block", "regional=Block"),
        ("dynamic=none,mode=default", "default"),
        ("b=1,a=0.5,nested", "nested,a=0.5,b=1"),
    ],
)
def test_arms_are_read(text: str, label: str) -> None:
    assert parse_arm(text).label == label and Mode(text) is Mode(label)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot read ''"),
        ("mode=fast", "unknown mode 'fast'"),
        ("mode", "unknown mode ''"),
        ("regional,nested", "says nested twice"),
        ("dynamic=1", "true, false or none"),
        ("dynamic", "cannot read 'dynamic'"),
        ("cache=small", "static or growing"),
        ("regional=a-b", "is no name of a class"),
        ("fullgraph=true", "give --fullgraph"),
        ("backend=eager", "Inductor is what is measured"),
        ("freezing=", "cannot read the value ''"),
        ("a=[bold]", r"cannot read the value '\[bold\]'"),
        ("x" * 500, "longer than 400"),
    ],
)
def test_what_is_no_arm_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        parse_arm(text)
    with pytest.raises(ValueError, match="is not a valid Mode"):
        Mode(text)


def test_arms_come_after_a_plain_mode() -> None:
    assert order_modes([REGIONAL]) == (Mode.DEFAULT, REGIONAL)
    assert order_modes([REGIONAL, Mode.MAX_AUTOTUNE, REGIONAL]) == (Mode.MAX_AUTOTUNE, REGIONAL)
    spec = RunSpec(parse_target("net.py"), modes=order_modes([REGIONAL, Mode("dynamic=true")]))
    assert command_line(spec) == "tcompile-tui run net.py --arm regional --arm dynamic=true"
    assert msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec) == spec


def test_records_hold_an_arm_by_its_name() -> None:
    started = ev.PhaseStarted(phase=Phase.COLD, mode=Mode("dynamic=true,regional"), pid=1, limit_s=1.0)
    line = encode_event(started)
    assert b'"mode":"dynamic=true,regional"' in line.replace(b": ", b":")
    assert decode_event(line) == started
    with pytest.raises(BadRecordError):
        decode_event(line.replace(b"dynamic=true", b"dynamic=maybe"))


def test_cudagraphs_come_with_a_mode_or_an_option() -> None:
    names = ("reduce-overhead", "max-autotune,triton.cudagraphs=false", "triton.cudagraphs=true", "regional")
    assert [Mode(name).cudagraphs for name in names] == [True, False, True, False]


@pytest.mark.parametrize(
    ("arm", "wrapped", "blocks", "lines"),
    [
        ("dynamic=true", False, None, ["model.compile(dynamic=True)"]),
        ("max-autotune", True, None, ['model = torch.compile(model, mode="max-autotune")']),
        ("regional", False, BLOCKS, ["for block in model.layers.children(): block.compile()"]),
        (
            "regional,reduce-overhead", False, CompiledBlocks("Block", 6, "0.layers"),
            ['for block in model.get_submodule("0.layers").children(): block.compile(mode="reduce-overhead")'],
        ),
        (
            "regional", False, CompiledBlocks("Block", 6),
            ['for block in [m for m in model.modules() if type(m).__name__ == "Block"]: block.compile()'],
        ),
        (
            "regional", True, BLOCKS,
            ["for name, block in list(model.layers.named_children()):"
             " setattr(model.layers, name, torch.compile(block))"],
        ),
        (
            "nested", False, BLOCKS,
            ["Block.forward = torch.compiler.nested_compile_region(Block.forward)", "model.compile()"],
        ),
        (
            "max-autotune,epilogue_fusion=true", False, None,
            ['model.compile(options={**torch._inductor.list_mode_options("max-autotune"), "epilogue_fusion": True})'],
        ),
    ],
)  # fmt: skip
def test_lines_to_paste(arm: str, wrapped: bool, blocks: CompiledBlocks | None, lines: list[str]) -> None:
    assert compile_lines(parse_arm(arm), wrapped, blocks) == lines


def regional(speedup: float, compile_s: float) -> tuple[Process, Process]:
    cold, warm = both(Compiled(REGIONAL, speedup=speedup, compile_s=compile_s))
    return [*cold[:2], ev.ModelCompiled(wrapped=False, blocks=BLOCKS), *cold[2:]], warm


def test_a_regional_arm_is_decided_and_compared_with_the_whole_model() -> None:
    whole = both(Compiled(speedup=1.5, compile_s=60.0))
    state = replay(eager_process(), *whole, *regional(1.48, 10.0), modes=(Mode.DEFAULT, REGIONAL))
    verdict = decide(state)
    found = next(finding for finding in verdict.findings if finding.id == "regions-compared")
    assert (
        "regional: a cold start takes 12.0 s, of the whole model 62.0 s" in found.title
        and "the time of default's" in found.title
    )
    assert found.evidence == "6 blocks of class Block in layers"
    lines = [verdict.line_for(judged) for judged in verdict.modes]
    assert lines == ["model.compile()", "for block in model.layers.children(): block.compile()"]


def test_blocks_of_torch_s_own_classes_are_told_as_such() -> None:
    cold, warm = regional(1.5, 10.0)
    cold = [replace(e, wrapped=True) if isinstance(e, ev.ModelCompiled) else e for e in cold]
    verdict = decide(replay(eager_process(), cold, warm, modes=(REGIONAL,)))
    assert not any(finding.id == "compile-wrapper" for finding in verdict.findings), "which model, is not known"
    facts = model_of(None)
    verdict = decide(replay(eager_process(), [*cold[:2], facts, *cold[2:]], warm, modes=(REGIONAL,)))
    found = next(finding for finding in verdict.findings if finding.id == "compile-wrapper")
    assert found.title.startswith("block.compile() would") and found.title.endswith("torch's own Block")


def model_of(repeated: CompiledBlocks | None) -> ev.ModelReady:
    return ev.ModelReady(
        class_name="Net", file=None, line=None, parameters=1, parameter_bytes=4, training=False, inputs=(),
        input_batches=1, repeated=repeated,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("compile_s", "count", "advised"), [(90.0, 6, True), (20.0, 6, False), (90.0, 3, False), (90.0, 0, False)]
)
def test_a_long_start_of_a_model_that_repeats_a_block_asks_for_regional(
    compile_s: float, count: int, advised: bool
) -> None:
    cold, warm = both(Compiled(compile_s=compile_s))
    model = model_of(replace(BLOCKS, count=count) if count else None)
    verdict = decide(replay(eager_process(), [*cold[:2], model, *cold[2:]], warm))
    assert any(finding.id == "blocks-repeat" for finding in verdict.findings) == advised


def test_the_best_arm_is_the_line_to_paste() -> None:
    state = replay(eager_process(), *both(Compiled(speedup=1.2)), *regional(1.6, 10.0), modes=(Mode.DEFAULT, REGIONAL))
    verdict = decide(state)
    assert verdict.best_mode is REGIONAL
    assert verdict.paste_line == "for block in model.layers.children(): block.compile()"
    compiles_too = replace(verdict, compiles_optimizer=True).paste_line
    assert compiles_too is not None and compiles_too.startswith("optimizer.step = torch.compile(optimizer.step); for ")

"""A search that runs out of memory has no company on its GPU."""

from __future__ import annotations

import pytest

from tcompile_tui.cli_data import check_fit_batch
from tcompile_tui.core.events import GpuSample
from tcompile_tui.core.shape_spec import ShapeSequence
from tcompile_tui.core.spec import Preset, RunSpec, SpecError, parse_target
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.host.devices import Device
from tcompile_tui.host.fit_checks import look_at_fit, refuse_company

_SPEC = RunSpec(parse_target("net.py"), fit_batch=True)


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (GpuSample(other_pids=(7,), memory_used_bytes=1 << 30), "1 other process"),
        (GpuSample(other_pids=None, memory_used_bytes=5 << 30), "5.00 GiB of H200 are in use"),
    ],
)
def test_company_is_refused(sample: GpuSample, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        refuse_company(sample, "H200")


@pytest.mark.parametrize(
    "sample",
    [
        GpuSample(other_pids=(), memory_used_bytes=5 << 30),
        GpuSample(other_pids=None, memory_used_bytes=1 << 30),
        GpuSample(),
    ],
)
def test_a_gpu_of_one_s_own_is_taken(sample: GpuSample) -> None:
    refuse_company(sample, "H200")


def test_a_cpu_is_refused_in_a_line() -> None:
    with pytest.raises(SpecError, match="needs a GPU"):
        look_at_fit(_SPEC, Device("cpu", "a CPU", "asked for"))
    look_at_fit(RunSpec(parse_target("net.py")), Device("cpu", "a CPU", "asked for"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": "cpu"}, "needs a GPU"),
        ({"inputs_from": "batch.pt"}, "--inputs batch.pt"),
        ({"step": StepSpec(own=FileFunction("t.py", "step"))}, "--step t.py:step"),
        ({"shapes": ShapeSequence.of(("B",), [(4,), (8,)])}, "leave one of them out"),
        ({"preset": Preset.QUICK}, "--preset standard"),
    ],
)
def test_what_has_no_batch_to_vary_is_refused(changes: dict[str, object], words: str) -> None:
    spec = RunSpec(**{"target": parse_target("net.py"), "fit_batch": True, **changes})  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=words):
        check_fit_batch(spec)

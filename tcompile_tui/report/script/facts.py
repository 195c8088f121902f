"""What a script is written from, and which runs no plain file can repeat."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tcompile_tui.core.discover import Resolved, find_hooks, resolve
from tcompile_tui.core.events import ModelReady
from tcompile_tui.core.input_spec import InputSpec, read_input, tensors_in
from tcompile_tui.core.reported_run import ReportedRun
from tcompile_tui.core.results import ModeResult
from tcompile_tui.core.spec import Phase, RunSpec, Source, SpecError, Task
from tcompile_tui.core.state import RunState
from tcompile_tui.core.step_spec import Epoch

# Those of the run: the same weights, and inputs of the same distribution.
MODEL_SEED = 20_240_229
INPUT_SEED = 7_040


@dataclass(frozen=True)
class Facts:
    """What the pieces of the script are chosen by. `own_loss`: the model's file has one that the run trained on.
    `epoch_end`: what the run had beside full batches."""

    run: ReportedRun
    spec: RunSpec
    resolved: Resolved
    cwd: str
    argv: tuple[str, ...]
    model: ModelReady
    result: ModeResult
    cuda: bool
    own_loss: bool
    further_calls: bool
    epoch_end: Epoch | None
    training_mode: bool

    @property
    def device(self) -> str:
        return "cuda" if self.cuda else "cpu"

    @property
    def source(self) -> Source | None:
        return self.spec.target.source

    @property
    def autocast(self) -> str | None:
        if self.spec.amp is None:
            return None
        dtype = "bfloat16" if self.spec.amp == "bf16" else "float16"
        return f'torch.autocast("{self.device}", dtype=torch.{dtype})'


def script_facts(run: ReportedRun) -> Facts:
    """Raises SpecError with one line where the run says too little, its file is gone, or a script cannot repeat it."""
    started, around, result = run.state.run, run.surroundings, run.shown_result
    model = next((p.model for p in run.state.processes.values() if p.model is not None), None)
    if started is None or around is None or model is None or result is None:
        raise SpecError(f"{run.name} did not get as far as a compiled step: there is nothing to reproduce")
    spec = started.spec
    if spec.task is Task.DECODE:
        raise SpecError(f"{run.name} decodes token by token: a script repeats a forward pass or a training step only")
    resolved = resolve(spec.target, Path(around.cwd), [argument.parameter for argument in spec.arguments])
    beyond = _beyond_a_script(spec, model)
    if beyond is not None:
        raise SpecError(f"no script can be written for {beyond}: --format json has all")
    hooks = find_hooks(Path(resolved.path)) if resolved.path is not None else None
    return Facts(
        run=run,
        spec=spec,
        resolved=resolved,
        cwd=around.cwd,
        argv=around.argv,
        model=model,
        result=result,
        cuda=started.device != "cpu",
        own_loss=model.loss is not None and model.loss.startswith("the file's"),
        further_calls=hooks is not None and hooks.more_inputs and not spec.inputs and spec.inputs_from is None,
        epoch_end=_epoch_end(run.state, spec, result),
        training_mode=model.training or (hooks is not None and hooks.eval is False),
    )


def literal(value: object) -> str:
    return ascii(value)


def _epoch_end(state: RunState, spec: RunSpec, result: ModeResult) -> Epoch | None:
    """What was asked for, else the usual one, as far as it got through."""
    asked, cold = spec.step.epoch, state.process_of(Phase.COLD, result.mode)
    if asked is not None:
        return asked if asked.has_unlike_batches else None
    usual = cold.compile.epoch_end if cold is not None else None
    if cold is None or usual is None:
        return None
    failed = {failure.batch for failure in cold.unlike_batch_failures}
    last = usual.last if f"a last batch of {usual.last}" not in failed else None
    epoch = Epoch(last=last, eval=1 if usual.evaluations and not any("evaluation" in batch for batch in failed) else 0)
    return epoch if epoch.has_unlike_batches else None


def _beyond_a_script(spec: RunSpec, model: ModelReady) -> str | None:
    """What of the run these pieces cannot say."""
    natural = spec.target.source is not None and not spec.inputs and spec.inputs_from is None
    return next(
        (
            what
            for holds, what in (
                (spec.step.own is not None, "a step of your own (--step), which is a script already"),
                (any(a.file and a.file.endswith((".yaml", ".yml")) for a in spec.arguments), "arguments from YAML"),
                (any(_has_strides(each) for each in spec.inputs), "inputs with strides"),
                (natural and not _has_plain_inputs(model), "the nested inputs of this library's model"),
                (_is_contrastive(spec, model), "the contrastive loss of this model"),
                (model.training and model.parameters == 0, "training without parameters"),
            )
            if holds
        ),
        None,
    )


def _has_strides(given: InputSpec) -> bool:
    return any(tensor.strides is not None for tensor in tensors_in(read_input(given)[1]))


_PLAIN_PATH = re.compile(r"args\[\d+\]|[^\W\d]\w*")


def _has_plain_inputs(model: ModelReady) -> bool:
    return bool(model.inputs) and all(_PLAIN_PATH.fullmatch(tensor.path) for tensor in model.inputs)


def _is_contrastive(spec: RunSpec, model: ModelReady) -> bool:
    """A model of text and images that makes its loss from pairs of them is asked for it by a flag."""
    names = {tensor.path for tensor in model.inputs}
    return spec.target.source is Source.TRANSFORMERS and model.training and {"input_ids", "pixel_values"} <= names

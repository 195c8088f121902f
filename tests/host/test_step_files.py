"""What is told of a step before a worker starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core.spec import RunSpec, SpecError, Task, parse_target
from tcompile_tui.core.step_spec import FileFunction, StepSpec
from tcompile_tui.host.step_files import look_at_step

ACCUMULATES = StepSpec(accumulate=4)


def _look(folder: Path, step: StepSpec, text: str = "", task: Task | None = None) -> None:
    model = folder / "net.py"
    model.write_text("def make_model():\n    ...\n" + text)
    look_at_step(RunSpec(parse_target("net.py"), task=task, step=step), model, folder)


def test_micro_batches_need_a_file_that_trains_or_a_word(tmp_path: Path) -> None:
    _look(tmp_path, ACCUMULATES, "TRAIN = True\n")
    _look(tmp_path, ACCUMULATES, task=Task.TRAIN)
    _look(tmp_path, StepSpec(tf32=True))
    with pytest.raises(SpecError, match=r"--accumulate is for training: .* does not say TRAIN = True"):
        _look(tmp_path, ACCUMULATES)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    step = StepSpec(own=FileFunction("train.py", "step"))
    with pytest.raises(SpecError, match=r"there is no file train\.py for train\.py:step"):
        _look(tmp_path, step)
    (tmp_path / "train.py").write_text("def step(model, batch): ...\n")
    _look(tmp_path, step)

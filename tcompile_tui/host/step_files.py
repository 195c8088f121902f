"""What can be told of a step before any of the user's code runs: are its files there, and is there a training step?"""

from __future__ import annotations

from pathlib import Path

from tcompile_tui.core.discover import find_hooks
from tcompile_tui.core.spec import RunSpec, SpecError
from tcompile_tui.core.step_spec import check_step


def look_at_step(spec: RunSpec, model_file: Path | None, cwd: Path) -> None:
    """Raises SpecError. Only a literal `TRAIN = True` in the model's file makes its step a training step."""
    loader = spec.data.loader if spec.data is not None else None
    for function in (*spec.step.functions, *((loader,) if loader is not None else ())):
        if not (cwd / function.path).is_file():
            raise SpecError(f"there is no file {function.path} for {function}: looked in {cwd}")
    if spec.task is not None or spec.step.own is not None:
        return
    try:
        check_step(spec.step, infers=True, amp=spec.amp)
    except SpecError as error:
        if model_file is None or not find_hooks(model_file).train:
            raise SpecError(f"{error} (the model's file does not say TRAIN = True)") from None

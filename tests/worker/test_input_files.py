"""Batches from `--inputs`: saved tensors without code, or a function of a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from tcompile_tui.worker.failures import StageError
from tcompile_tui.worker.input_files import load_inputs

pytestmark = pytest.mark.xdist_group("torch")


class Trap:
    """Unpickling it would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def refusal(place: str) -> str:
    with pytest.raises(StageError) as caught:
        load_inputs(place)
    assert caught.value.fault == "input" and "\n" not in str(caught.value)
    return str(caught.value)


def test_saved_tensors_come_back(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(2), "more": (torch.zeros(1), 3, None)}, tmp_path / "batch.pt")
    loaded = load_inputs(str(tmp_path / "batch.pt"))
    assert torch.equal(loaded["x"], torch.ones(2)) and loaded["more"][1:] == (3, None)


def test_code_in_a_saved_batch_is_not_run(tmp_path: Path) -> None:
    torch.save({"x": torch.ones(2), "trap": Trap(tmp_path / "ran")}, tmp_path / "batch.pt")
    assert "holds objects beside tensors" in refusal(str(tmp_path / "batch.pt"))
    assert not (tmp_path / "ran").exists()
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap(tmp_path / "ran")))
    assert "torch.save did not write it" in refusal(str(tmp_path / "plain.pt"))
    assert not (tmp_path / "ran").exists()


def test_what_is_no_saved_batch_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "numbers.pt").write_text("17 4 29\n")
    (tmp_path / "empty.pt").write_bytes(b"")
    torch.save({"x": torch.ones(999)}, tmp_path / "cut.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "cut.pt").read_bytes()[:900])
    for name in ("text.pt", "numbers.pt", "empty.pt", "cut.pt"):
        assert f"cannot load --inputs {tmp_path}/{name}" in refusal(str(tmp_path / name))
    assert "No such file" in refusal(str(tmp_path / "none.pt"))


def test_what_cannot_be_pickled_is_told_and_may_come_from_a_function(tmp_path: Path) -> None:
    (tmp_path / "gone.pt").write_bytes(b"cmodule_that_is_gone\nBatch\n.")
    assert "holds objects beside tensors" in refusal(str(tmp_path / "gone.pt"))
    file = tmp_path / "locked.py"
    file.write_text("import threading\ndef make_batch():\n    return {'lock': threading.Lock()}\n")
    assert load_inputs(f"{file}:make_batch")["lock"].acquire()


def test_a_function_makes_the_batch(tmp_path: Path) -> None:
    file = tmp_path / "data.py"
    file.write_text(
        "import torch\nN = 3\ndef make_batch():\n    return torch.ones(N)\ndef broken():\n    return 1 / 0\n"
    )
    assert load_inputs(f"{file}:make_batch").shape == (3,)
    assert "has no function 'make'" in refusal(f"{file}:make")
    assert "has no function 'N'" in refusal(f"{file}:N")
    assert "broken() of" in refusal(f"{file}:broken") and "ZeroDivisionError" in refusal(f"{file}:broken")
    assert "there is no file" in refusal(f"{tmp_path}/none.py:make_batch")

"""Real worker processes on the CPU: what hostile models do to them, and what a compile tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.accuracy import Agreement, judge
from tcompile_tui.core.spec import Arm, Mode, Phase
from tcompile_tui.core.step_spec import StepSpec

from .driver import PhaseRun, run_phase

pytestmark = pytest.mark.xdist_group("torch")

CASES = Path(__file__).parent.parent / "data" / "cases"
_HEAD = """
import atexit, sys, threading
import torch

def example_inputs():
    return torch.randn(2, 16)

class Net(torch.nn.Module):
"""


def _model(folder: Path, body: str) -> Path:
    path = folder / "net.py"
    path.write_text(_HEAD + body)
    return path


def _line(path: Path, words: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if words in line)


def test_what_a_model_prints_is_output_and_never_a_record(tmp_path: Path) -> None:
    run = run_phase(CASES / "C46_stdout_protocol_forgery.py", tmp_path)
    assert run.process.ended is not None and run.process.ended.outcome is ev.Outcome.OK
    assert run.process.ended.detail == "", "no stray bytes among the records"
    assert len(run.all_of(ev.WorkerDone)) == 1
    assert run.process.arms[Arm.EAGER].warmup_steps >= 3
    assert b'{"event": "done", "speedup": 99.0}' in run.output
    assert b"\xff\xfe\x00 raw bytes \x1b[2J" in run.output


def test_an_exit_in_forward_is_a_failure_with_its_place(tmp_path: Path) -> None:
    model = _model(tmp_path, "    def forward(self, x):\n        sys.exit(0)\n")
    run = run_phase(model, tmp_path)
    failure = run.process.failure
    assert run.process.ended is not None and run.process.ended.outcome is ev.Outcome.ERROR
    assert failure is not None and failure.error_type == "SystemExit" and "sys.exit(0)" in failure.message
    assert (failure.file, failure.line) == (str(model), _line(model, "sys.exit(0)"))
    assert failure.source == "sys.exit(0)" and failure.fault == "model"


_SIDE_BY_SIDE = """    copied = False

    def __deepcopy__(self, memo):
        other = Net()
        other.copied = True
        return other

    def forward(self, x):
        if self.copied:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return x + 1
"""


def test_an_arm_that_runs_apart_needs_no_second_copy(tmp_path: Path) -> None:
    run = run_phase(_model(tmp_path, _SIDE_BY_SIDE), tmp_path, Phase.APART, Mode.DEFAULT, arm=Arm.EAGER)
    assert run.process.done, run.process.failure
    assert list(run.process.apart) == [Arm.EAGER] and len(run.process.apart[Arm.EAGER]) == 8
    assert run.process.compiled is None and not run.process.pairs


def test_threads_and_exit_hooks_do_not_hold_the_worker(tmp_path: Path) -> None:
    """Beside that: an eager process does not import the compiler, so no eager step pays for it."""
    model = _model(
        tmp_path,
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        threading.Thread(target=threading.Event().wait).start()\n"
        "        atexit.register(threading.Event().wait)\n\n"
        "    def forward(self, x):\n"
        "        print('compiler imported:', 'torch._dynamo' in sys.modules)\n"
        "        return x + 1\n",
    )
    run = run_phase(model, tmp_path)
    assert run.process.done and run.process.ended is not None
    assert run.process.ended.outcome is ev.Outcome.OK and run.process.ended.detail == "", "it left by itself"
    steps = sum(block.steps for block in run.all_of(ev.Block))
    imported = run.output.split(b"compiler imported: ")[1:]
    assert len(imported) >= steps
    assert not any(told.startswith(b"True") for told in imported)


def test_a_crash_in_native_code_keeps_what_was_measured(tmp_path: Path) -> None:
    model = CASES / "C50_segfault.py"
    run = run_phase(model, tmp_path)
    assert run.process.ended is not None and not run.process.done
    assert (run.process.ended.outcome, run.process.ended.detail) == (ev.Outcome.KILLED, "killed by SIGSEGV")
    assert run.process.arms[Arm.EAGER].warmup_steps == 1, "the second call crashed"
    place = f'File "{model}", line {_line(model, "ctypes.string_at(0)")} in forward'
    assert place.encode() in run.output


def test_a_flood_of_output_does_not_block_the_worker(tmp_path: Path) -> None:
    run = run_phase(CASES / "C52_log_flood.py", tmp_path)
    assert run.process.done
    steps = run.process.arms[Arm.EAGER].warmup_steps
    assert run.output_bytes >= steps * ((1 << 20) + 17_000 * 121) > 9_000_000


def test_an_exception_without_a_text_is_named(tmp_path: Path) -> None:
    model = CASES / "C54_bad_exception.py"
    failure = run_phase(model, tmp_path).process.failure
    assert failure is not None and failure.error_type == "Ugly" and "ValueError" in failure.message
    assert (failure.file, failure.line) == (str(model), _line(model, "raise Ugly()"))
    assert "Traceback" in failure.traceback


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> PhaseRun:
    """Of a model whose graph breaks once. Its portable caches lie beside it."""
    folder = tmp_path_factory.mktemp("cold")
    body = "    def forward(self, x):\n        x = x.sin() + 1\n        print('here')\n        return x.cos() * 2\n"
    run = run_phase(_model(folder, body), folder, Phase.COLD, Mode.DEFAULT, artifacts_to=folder / "artifacts")
    assert run.process.done, run.process.failure
    return run


def test_portable_caches_serve_a_start_on_empty_ones(tmp_path: Path, cold: PhaseRun) -> None:
    (saved,) = cold.all_of(ev.ArtifactsMoved)
    assert cold.process.model is not None and cold.process.model.file is not None
    file = Path(cold.process.model.file).with_name("artifacts")
    assert saved.saved and saved.bytes == file.stat().st_size
    assert {count.kind: count.entries for count in saved.counts}["inductor"] == 2, "one for each side of the break"
    run = run_phase(file.parent / "net.py", tmp_path, Phase.COLD, Mode.DEFAULT, artifacts_from=file)
    assert run.process.done, run.process.failure
    (loaded,) = run.all_of(ev.ArtifactsMoved)
    assert not loaded.saved and loaded.counts == saved.counts
    assert {lookup.outcome for lookup in run.all_of(ev.CacheLookup)} == {ev.CacheOutcome.HIT}


def test_a_file_that_holds_no_caches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no caches")
    model = _model(tmp_path, "    def forward(self, x):\n        return x\n")
    failure = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT, artifacts_from=tmp_path / "file").process.failure
    assert failure is not None and f"{tmp_path / 'file'} holds no compile caches" in failure.message


def test_a_cold_compile_tells_its_frames_breaks_and_cache_misses(cold: PhaseRun) -> None:
    run = cold
    assert run.process.model is not None and run.process.model.file is not None
    model = Path(run.process.model.file)

    frames = run.all_of(ev.FrameStarted)
    assert (frames[0].function, frames[0].file, frames[0].line) == ("forward", str(model), _line(model, "def forward"))
    places = {(found.file, found.line, found.source) for found in run.all_of(ev.GraphBreak)}
    assert places == {(str(model), _line(model, "print('here')"), "print('here')")}
    assert len(run.all_of(ev.GraphCaptured)) == 2

    lookups = run.all_of(ev.CacheLookup)
    assert {lookup.outcome for lookup in lookups} == {ev.CacheOutcome.MISS}
    assert {lookup.cache for lookup in lookups} == set(ev.CacheKind)

    first, *others = run.all_of(ev.Block)
    assert (first.steps, first.compiled_at) == (1, (0,))
    assert not any(block.compiled_at for block in others)

    assert not run.all_of(ev.StepsProfiled), "the compiler told what it made: there is nothing to prove"
    last_told_s = max(event.t_s for event in run.all_of(ev.CompileSpan))
    assert sum(block.steps for block in others if block.t_s > last_told_s) > 3, "cached steps make no records"

    (summary,) = run.all_of(ev.CompilerSummary)
    assert summary.frames_compiled == summary.frames_seen == 2 and summary.unique_graphs == 2
    assert summary.disabled_by is None and summary.handler_errors == 0
    (ready,), (imports,) = run.all_of(ev.WorkerReady), run.all_of(ev.ImportsDone)
    assert ready.capabilities == ("trace", "callbacks")
    assert imports.compiler_s is not None and imports.compiler_s > 0.1, "the compiler's import is a cost of its own"


_TORCHS_OWN = """import torch
from torch import nn

def make_model():
    return {model}

def example_inputs():
    return torch.randn(4, 6, 8)
"""


def test_a_model_of_torchs_own_is_wrapped_so_that_it_is_compiled(tmp_path: Path) -> None:
    """In place, Dynamo skips the forward of torch.nn.Sequential without a word."""
    model = tmp_path / "sequential.py"
    model.write_text(_TORCHS_OWN.format(model="nn.Sequential(nn.Linear(8, 8), nn.Tanh())"))
    run = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT)
    assert run.process.done, run.process.failure
    assert run.all_of(ev.ModelCompiled)[0].wrapped
    assert len(run.all_of(ev.GraphCaptured)) == 1


def test_a_model_that_dynamo_skips_is_proved_to_run_eager(tmp_path: Path) -> None:
    model = tmp_path / "recurrent.py"
    model.write_text(_TORCHS_OWN.format(model="nn.LSTM(8, 8)"))
    run = run_phase(model, tmp_path, Phase.COLD, Mode.DEFAULT)
    assert run.process.done, run.process.failure
    (proof,) = run.all_of(ev.StepsProfiled)
    assert (proof.program_calls, proof.regions, proof.lookups) == (0, (), 0)
    assert not run.process.compiled_anything


def test_a_reference_is_made_in_a_process_of_its_own_and_used_by_a_warm_one(tmp_path: Path) -> None:
    """A random training step of several micro-batches, so that everything which is compared is seen at once."""
    model = _model(
        tmp_path,
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.fc, self.drop = torch.nn.Linear(16, 64), torch.nn.Dropout(0.5)\n\n"
        "    def forward(self, x):\n"
        "        y = self.fc(x).relu()\n"
        "        return y, self.drop(y)\n\n"
        "TRAIN = True\n",
    )
    file = tmp_path / "reference.pt"
    made = run_phase(model, tmp_path, Phase.REFERENCE, reference_file=file, step=StepSpec(accumulate=2))
    assert made.process.done and file.exists(), made.process.failure
    assert not made.process.arms and not made.all_of(ev.OutputsCompared)

    run = run_phase(model, tmp_path, Phase.WARM, Mode.DEFAULT, reference_file=file, step=StepSpec(accumulate=2))
    assert run.process.done, run.process.failure
    kinds = [event.comparison for event in run.all_of(ev.OutputsCompared)]
    assert kinds == [ev.ComparisonKind.EAGER_TWICE, ev.ComparisonKind.COMPILED, ev.ComparisonKind.STEADY]
    steady = run.process.comparisons[ev.ComparisonKind.STEADY]
    leaves = {leaf.path: leaf for leaf in steady.leaves}
    assert set(leaves) == {"output[0]", "output[1]", "loss", "gradient of fc.weight", "gradient of fc.bias"}
    assert steady.reference_dtype == "float64"
    errors = leaves["output[0]"].errors
    assert errors is not None and 0 < errors.eager_rms < 1e-6 and errors.compiled_rms < 1e-6
    assert leaves["output[1]"].rms_difference > 0.1, "other random numbers"
    (drawn,) = run.all_of(ev.RandomOutputsCompared)
    assert {spread.path for spread in drawn.leaves} == set(leaves)
    judged = judge(run.process.comparisons, run.process.random_outputs, training=True)
    assert (judged.agreement, judged.path) == (Agreement.RANDOM, "output[1]")


def test_a_warm_start_hits_the_caches_and_ends_with_the_proof_of_what_ran(tmp_path: Path) -> None:
    model = _model(
        tmp_path,
        "    def forward(self, x):\n        x = x.sin() + 1\n        print('here')\n        return x.cos() * 2\n",
    )
    run = run_phase(model, tmp_path, Phase.WARM, Mode.DEFAULT)
    assert run.process.done, run.process.failure
    proof, eager = run.all_of(ev.StepsProfiled)
    assert proof.arm is Arm.COMPILED
    assert (eager.arm, eager.regions, eager.lookups) == (Arm.EAGER, (), 0), "the same process, without the compiler"
    assert (proof.program_calls, proof.lookups) == (2 * proof.steps, 2 * proof.steps), "one for each side of the break"
    assert len(proof.regions) == 2
    assert 0 < proof.lookup_ns < proof.wall_ns
    assert b"profiler_start" not in run.output, "the log is the model's, not the profiler's"
    assert proof.kernels is None and proof.graph_launches is None, "nothing is known of a device"
    order = [type(event) for event in run.events]
    assert order.index(ev.MeasurementDone) < order.index(ev.StepsProfiled) < order.index(ev.WorkerDone)


def test_explain_names_the_places_where_a_graph_ends(tmp_path: Path) -> None:
    model = _model(
        tmp_path,
        "    def forward(self, x):\n        x = x.sin() + 1\n        print('here')\n        return x.cos() * 2\n",
    )
    run = run_phase(model, tmp_path, Phase.EXPLAIN)
    (told,) = run.all_of(ev.Explained)
    assert told.graphs == 2
    assert [(end.file, end.line) for end in told.breaks] == [(str(model), _line(model, "print('here')"))]

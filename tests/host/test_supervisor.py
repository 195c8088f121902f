"""Whole runs with a scripted worker: the verdict holds, nothing is left behind, whatever the worker does."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcompile_tui.core import events as ev
from tcompile_tui.core.spec import Phase

from .fake_run import FakeRun, processes_of, start_fake_run


def _wait_until(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def _compiling(run: FakeRun) -> bool:
    return run.runs_dir.exists() and any(isinstance(event, ev.FrameStarted) for event in run.events)


def test_a_run_decides_and_writes_down_everything(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "", "--json", "-")
    status, out, err = run.finish()
    assert status == 0, err
    assert json.loads(out) == run.verdict, "stdout has the verdict and nothing else"
    assert run.verdict["decision"].startswith("ENABLE")
    assert run.verdict["per_mode"]["default"]["speedup"]["value"] == pytest.approx(2.0, rel=0.01)
    assert [event.phase for event in run.events if isinstance(event, ev.PhaseEnded)] == [
        Phase.EAGER,
        Phase.COLD,
        Phase.WARM,
    ]
    assert isinstance(run.events[-1], ev.RunEnded)
    assert not (run.folder / "worker.zip").exists()
    assert processes_of(run) == []


def test_the_gate_of_a_run_is_in_its_status_its_records_and_its_files(tmp_path: Path) -> None:
    junit = tmp_path / "gate.xml"
    run = start_fake_run(
        tmp_path, "", "--fail-on", "slower", "--min-speedup", "3", "--junit", str(junit), "--json", "-"
    )
    status, out, err = run.finish()
    assert status == 10 and "gate: min-speedup: default: the speedup is " in err
    assert run.verdict["exit_code"] == 10 and run.verdict["decision"].startswith("ENABLE")
    checks = {check["name"]: check["passed"] for check in run.verdict["gate"]["checks"]}
    assert checks == {"measured": True, "slower": True, "min-speedup": False}
    assert json.loads(out) == run.verdict and 'failures="1"' in junit.read_text()
    assert isinstance(run.events[-1], ev.RunEnded) and run.events[-1].exit_code == 10


def test_modes_are_measured_one_after_the_other(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "", "--mode", "reduce-overhead", "--mode", "default")
    status, out, _ = run.finish()
    assert status == 0
    assert list(run.verdict["per_mode"]) == ["default", "reduce-overhead"]
    assert "reduce-overhead: ENABLE" in out


@pytest.mark.parametrize(
    ("script", "preset", "cold", "warm"),
    [
        ("", "quick", 1, 1),
        ("", "standard", 1, 1),  # 2x: no other process can change the decision
        ("near-tie", "standard", 1, 3),
        ("", "thorough", 3, 5),
    ],
)
def test_further_processes_are_measured_where_they_matter(
    tmp_path: Path, script: str, preset: str, cold: int, warm: int
) -> None:
    run = start_fake_run(tmp_path, script, "--preset", preset)
    status, _, err = run.finish()
    assert status == 0, err
    phases = [event.phase for event in run.events if isinstance(event, ev.PhaseEnded)]
    assert (phases.count(Phase.COLD), phases.count(Phase.WARM)) == (cold, warm)
    assert run.verdict["per_mode"]["default"]["speedup"]["processes"] == warm


def test_arms_that_do_not_fit_side_by_side_run_in_turn(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "no-room", "--preset", "quick")
    status, out, err = run.finish()
    assert status == 0, err
    ended = [event.phase for event in run.events if isinstance(event, ev.PhaseEnded)]
    assert ended == [Phase.EAGER, Phase.COLD, Phase.WARM, *[Phase.APART] * 4], "one round is enough for 2x"
    arms = [event.arm.value[0] for event in run.events if isinstance(event, ev.Block) and event.steps == 1]
    assert "".join(arms) == "eccecce", "eager, cold, warm, then A B B A"
    mode = run.verdict["per_mode"]["default"]
    assert (mode["status"], mode["compared_in"]) == ("measured", "unpaired process blocks")
    assert mode["speedup"]["value"] == pytest.approx(2.0, rel=0.01)
    assert run.verdict["decision"] == "ENABLE WITH CARE" and "unpaired process blocks" in out


def test_what_comes_after_the_measurement_may_crash(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "crash-afterwards")
    status, _, err = run.finish()
    assert status == 0, err
    assert run.verdict["decision"].startswith("ENABLE")


def test_kill_9_of_the_supervisor_leaves_no_process_and_a_readable_folder(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "orphans")
    _wait_until(lambda: _compiling(run))
    assert len(processes_of(run)) >= 4, "supervisor, guard, worker and both sleepers"
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    _wait_until(lambda: processes_of(run) == [], timeout_s=3)
    assert any(isinstance(event, ev.CompileSpan) for event in run.events)
    assert not (run.folder / "verdict.json").exists()


@pytest.mark.parametrize(("script", "name"), [("killed", "SIGKILL"), ("segfault", "SIGSEGV")])
def test_a_killed_worker_gives_failed_and_names_the_signal(tmp_path: Path, script: str, name: str) -> None:
    run = start_fake_run(tmp_path, script)
    status, _, err = run.finish()
    assert status == 6
    assert run.verdict["decision"] == "FAILED" and name in run.verdict["headline"]
    assert name in err and "Traceback" not in err


@pytest.mark.parametrize(("script", "text"), [("leaves", "before its last record"), ("fails", "Unsupported: no")])
def test_an_exit_status_of_0_is_no_success_and_an_error_is_told(tmp_path: Path, script: str, text: str) -> None:
    run = start_fake_run(tmp_path, script)
    status, _, err = run.finish()
    assert status == 6 and text in err


def test_a_bad_exit_status_after_the_last_record_is_no_failure(tmp_path: Path) -> None:
    status, _, err = start_fake_run(tmp_path, "bad-status").finish()
    assert status == 0, err


def test_forged_records_on_stdout_and_garbage_on_every_descriptor_change_nothing(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "forge")
    status, _, err = run.finish()
    assert status == 0, err
    assert run.verdict["per_mode"]["default"]["speedup"]["value"] == pytest.approx(2.0, rel=0.01)
    ended = next(e for e in run.events if isinstance(e, ev.PhaseEnded) and e.phase is Phase.COLD)
    assert "stray bytes" in ended.detail


def test_a_flood_of_output_is_capped_and_the_run_goes_on(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "flood")
    status, _, err = run.finish()
    assert status == 0, err
    log = (run.folder / "log.txt").read_bytes()
    assert len(log) < 10_000_000 and b"bytes were dropped here" in log


def test_a_process_that_will_not_leave_is_ended_and_its_results_count(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "stay")
    status, _, err = run.finish()
    assert status == 0, err
    assert processes_of(run) == []


def test_interrupt_ends_the_measuring_and_terminate_keeps_the_folder(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        folder = tmp_path / number.name
        folder.mkdir()
        run = start_fake_run(folder, "compile-forever")
        _wait_until(lambda run=run: _compiling(run))  # type: ignore[misc]
        run.process.send_signal(number)
        status, _, err = run.finish(timeout_s=30)
        assert status == 5, err
        assert run.verdict["decision"] == "STOPPED"
        assert processes_of(run) == []


def test_a_compile_that_never_ends_is_cut_off_at_the_budget(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "compile-forever", "--budget", "5")
    status, _, err = run.finish(timeout_s=40)
    assert status == 5
    assert "not finished in" in run.verdict["headline"], err


def test_the_run_outlives_its_terminal(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path)
    assert run.process.stderr is not None and run.process.stdout is not None
    run.process.stderr.close()  # EPIPE from here on
    run.process.stdout.close()
    _wait_until(run.runs_dir.exists)
    run.process.send_signal(signal.SIGHUP)
    assert run.process.wait(timeout=60) == 0
    assert run.verdict["decision"].startswith("ENABLE")


def test_caches_are_private_and_removed(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "", "--keep-caches")
    assert run.finish()[0] == 0
    (notice,) = [event for event in run.events if isinstance(event, ev.Notice) and event.code == "caches-kept"]
    for root in notice.text.partition(": ")[2].split():
        assert Path(root).stat().st_mode & 0o777 == 0o700 and len(root) <= 60
        for entry in sorted(Path(root).rglob("*"), reverse=True):
            entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        Path(root).rmdir()


def test_a_compile_that_cannot_pay_off_is_stopped_and_the_answer_is_skip(tmp_path: Path) -> None:
    run = start_fake_run(
        tmp_path, "compile-busily", "--planned-steps", "20", "--mode", "default", "--mode", "reduce-overhead"
    )
    status, out, err = run.finish()
    assert status == 0, err
    verdict = run.verdict
    assert verdict["decision"] == "SKIP" and verdict["paste"] is None
    assert {mode["status"] for mode in verdict["per_mode"].values()} == {"cannot pay off"}
    assert [finding["id"] for finding in verdict["findings"]].count("start-outlasts-run") == 2
    stopped = [event for event in run.events if isinstance(event, ev.CompileStopped)]
    assert verdict["first_answer_s"] == pytest.approx(max(event.t_s for event in stopped), abs=0.001)
    assert "first safe answer after" in out
    assert processes_of(run) == []


def test_a_gate_wants_its_figures_and_is_not_answered_early(tmp_path: Path) -> None:
    run = start_fake_run(tmp_path, "compile-busily", "--planned-steps", "20", "--fail-on", "slower")
    _wait_until(lambda: _compiling(run))
    time.sleep(0.5)
    run.process.send_signal(signal.SIGTERM)
    status, _, err = run.finish()
    assert not any(isinstance(event, ev.CompileStopped) for event in run.events), err
    assert status == 5

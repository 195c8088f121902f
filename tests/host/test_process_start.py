"""Fork where it is safe, fresh interpreters where it is not, and the reason said."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tcompile_tui.core.events import StartMethod
from tcompile_tui.core.spec import Phase
from tcompile_tui.host import roots
from tcompile_tui.host.archive import build_worker_archive
from tcompile_tui.host.process_start import ProcessStarter, Surroundings

pytestmark = pytest.mark.xdist_group("torch")


@dataclass
class Started:
    starter: ProcessStarter
    notices: list[str]
    environment: dict[str, str]

    def how(self, phase: Phase, changes: Mapping[str, str] | None = None) -> StartMethod:
        """Start a process of this phase and end it at once."""
        worker = self.starter.start(phase, {**self.environment, **(changes or {})})
        worker.close()
        return worker.how


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    root = roots.create_root()
    notices: list[str] = []
    shared = Surroundings(
        sys.executable, build_worker_archive(tmp_path / "worker.zip"), secrets.token_hex(8), tmp_path, "cpu",
        lambda text: None,
    )  # fmt: skip
    starter = ProcessStarter(shared, notices.append)
    yield Started(starter, notices, {**os.environ, **root.environment})
    starter.close()
    root.remove()


def test_processes_that_compile_are_forked_once_torch_is_imported(started: Started) -> None:
    assert started.how(Phase.COLD) is StartMethod.FRESH, "not opened yet"
    started.starter.open(started.environment, lambda: True)
    assert [started.how(phase) for phase in (Phase.COLD, Phase.WARM)] == [StartMethod.FORKED] * 2
    (notice,) = started.notices
    assert notice.startswith("processes that compile are forked")


def test_another_value_of_a_variable_that_torch_may_have_read_asks_for_a_fresh_process(started: Started) -> None:
    started.starter.open(started.environment, lambda: True)
    assert started.how(Phase.COLD, {"OMP_NUM_THREADS": "77"}) is StartMethod.FRESH
    assert "OMP_NUM_THREADS" in started.notices[-1]
    assert started.how(Phase.COLD) is StartMethod.FRESH, "for the rest of the run"


def test_folders_of_their_own_are_no_reason_against_forking(started: Started, tmp_path: Path) -> None:
    started.starter.open(started.environment, lambda: True)
    assert started.how(Phase.COLD, {"TMPDIR": str(tmp_path)}) is StartMethod.FORKED


def test_a_torch_that_starts_threads_is_not_forked_from(started: Started, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True, name='watchdog').start()\n"
    )
    environment = {**started.environment, "PYTHONPATH": str(tmp_path)}
    started.starter.open(environment, lambda: True)
    assert started.how(Phase.COLD) is StartMethod.FRESH
    assert started.notices[0].endswith("importing torch started threads: watchdog")


def test_an_import_that_fails_leaves_fresh_processes(started: Started, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit(3)\n")
    started.starter.open({**started.environment, "PYTHONPATH": str(tmp_path)}, lambda: True)
    assert started.how(Phase.COLD) is StartMethod.FRESH
    assert "the process to fork from ended" in started.notices[0]


def test_stopping_while_torch_is_imported_says_nothing(started: Started) -> None:
    started.starter.open(started.environment, lambda: False)
    assert started.notices == []

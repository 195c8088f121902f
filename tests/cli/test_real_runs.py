"""Complete runs with real torch on the CPU, few because each takes a minute. Machines that run tests are busy, so
what is asserted of a speedup is what holds there too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("real-runs")


def _run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any] | None, str]:
    """(exit status, verdict, stderr)"""
    command = [
        sys.executable, "-m", "tcompile_tui", "run", *arguments, "--preset", "smoke", "--device", "cpu",
        "--runs-dir", str(tmp_path / "runs"), "--json", "-",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    return result.returncode, json.loads(result.stdout) if result.stdout else None, result.stderr


def _finding_ids(verdict: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in verdict["findings"]}


def test_compile_wins_where_fusion_must(tmp_path: Path, sample_models: Path) -> None:
    metrics, series = tmp_path / "run.prom", tmp_path / "run.csv"
    status, verdict, err = _run(
        tmp_path, str(sample_models / "pointwise_chain.py"), "--metrics-textfile", str(metrics), "--csv", str(series)
    )
    assert status == 0 and verdict is not None, err
    assert verdict["decision"].startswith("ENABLE") or "host-contended" in _finding_ids(verdict)
    mode = verdict["per_mode"]["default"]
    assert mode["speedup"]["lo"] > 1
    assert mode["graphs"] == 1 and mode["graph_breaks"] == 0
    assert mode["agreement"] in ("same", "within rounding")
    assert mode["warm_cache"]["hits"] > 0, "the second start must come from the private caches"
    assert mode["cold_start_s"] > mode["warm_start_s"] > 0
    assert f'decision="{verdict["decision"]}"' in metrics.read_text()
    assert {"eager", "cold", "warm"} <= {line.split(",")[3] for line in series.read_text().splitlines()}


def test_compile_loses_where_launches_dominate(tmp_path: Path, sample_models: Path) -> None:
    status, verdict, err = _run(tmp_path, str(sample_models / "tiny_launch_bound.py"), "--planned-steps", "1000")
    assert status == 0 and verdict is not None, err
    assert not verdict["decision"].startswith("ENABLE")
    assert verdict["paste"] is None


def test_a_model_that_fails_in_eager_names_its_line(tmp_path: Path, sample_models: Path) -> None:
    model = sample_models / "broken.py"
    status, verdict, err = _run(tmp_path, str(model))
    assert status == 3 and verdict is not None
    lines = model.read_text().splitlines()
    raising = next(number for number, line in enumerate(lines, 1) if "raise ValueError" in line)
    assert f"broken.py:{raising}" in err.splitlines()[-1]
    assert "Traceback" not in err
    (folder,) = (tmp_path / "runs").iterdir()
    assert "Traceback" in (folder / "tracebacks.txt").read_text()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [((), ("no input given", "--input")), (("--input", "x=int64[4,8]"), ("dtype",))],
    ids=["missing", "wrong dtype"],
)
def test_a_bad_input_is_one_line_and_status_2(tmp_path: Path, inputs: tuple[str, ...], words: tuple[str, ...]) -> None:
    model = tmp_path / "linear.py"
    model.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = torch.nn.Linear(8, 8)\n\n    def forward(self, x):\n        return self.inner(x)\n"
    )
    status, _, err = _run(tmp_path, str(model), *inputs)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert status == 2 and len(errors) == 1
    assert all(word in errors[0] for word in words)

"""What is written while a run is measured: metrics that a scraper can parse, rows that together are the whole run."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tcompile_tui.cli_live import LiveFiles
from tcompile_tui.core.spec import parse_target
from tcompile_tui.core.state import RunState
from tcompile_tui.host.event_log import read_events
from tcompile_tui.report.exposition import Metric, escaped_help, exposition
from tcompile_tui.report.live_metrics import live_metrics_text
from tcompile_tui.report.live_series import LIVE_COLUMNS, LiveSeries
from tcompile_tui.report.series import series_csv
from tests.core.streams import eager_process, replay
from tests.ui.recorded import CONVNET, recorded_run

_SAMPLE = re.compile(r'(?P<name>[a-z_]+)\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (?P<value>\S+)')
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parsed(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Samples of the text format. Every one must follow its HELP and TYPE, which occur once."""
    seen: dict[str, str] = {}
    found = []
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in seen
            seen[name] = ""
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert seen[name] == "" and kind in ("gauge", "counter")
            assert name.endswith("_total") == (kind == "counter")
            seen[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None and seen[match["name"]], line
            labels = {
                name: re.sub(r'\\[\\"n]', lambda escape: _ESCAPES[escape.group()], value)
                for name, value in _LABEL.findall(match["labels"])
            }
            found.append((match["name"], labels, float(match["value"])))
    return found


@settings(max_examples=50)
@given(st.text(), st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_any_label_comes_back_as_it_was(target: str, label: str, help_text: str, value: float) -> None:
    text = exposition([Metric("x", help_text, (({"mode": label}, value),))], target)
    assert parsed(text) == [("tcompile_x", {"target": target, "mode": label}, value)]


@settings(max_examples=50)
@given(st.text())
def test_help_stays_on_its_line(text: str) -> None:
    shown = escaped_help(text)
    assert "\n" not in shown
    assert re.sub(r"\\[\\n]", lambda escape: _ESCAPES[escape.group()], shown) == text


def states(folder: Path) -> Iterator[RunState]:
    """One state that grows, given after every fiftieth record of a recorded run and at its end."""
    state = RunState()
    for number, event in enumerate(read_events(recorded_run(CONVNET, folder).events)):
        state.apply(event)
        if number % 50 == 0:
            yield state
    yield state


def test_metrics_can_be_parsed_at_any_moment_of_a_run(tmp_path: Path) -> None:
    names, stages = set(), set()
    for state in states(tmp_path):
        for name, labels, value in parsed(live_metrics_text(state)):
            names.add(name)
            stages.add(labels.get("stage"))
            assert labels["target"] == "sample_models/convnet.py" and value >= 0
            if name == "tcompile_live_step_seconds":
                assert value < 1, "seconds, not milliseconds"
    assert {"tcompile_live_gpu_power_watts", "tcompile_live_speedup_ratio_low", "tcompile_live_pairs_total"} <= names
    assert len(stages) > 2


def test_metrics_leave_out_what_is_not_known() -> None:
    state = replay(eager_process())
    assert state.run is not None
    state.run = replace(state.run, spec=replace(state.run.spec, target=parse_target("net.py")))
    names = {name for name, _, _ in parsed(live_metrics_text(state))}
    assert "tcompile_live_elapsed_seconds" in names and not any("gpu" in name for name in names)
    assert live_metrics_text(RunState()) == ""


def test_rows_that_are_written_in_pieces_are_the_whole_series(tmp_path: Path) -> None:
    series = LiveSeries()
    pieces = []
    for state in states(tmp_path):
        pieces.append(series.more(state))
    rows = list(csv.DictReader((series.head() + "".join(pieces)).splitlines()))
    assert all(None not in row and None not in row.values() for row in rows), "every row has every column"
    columns = LIVE_COLUMNS[2:10]
    steps = sorted(tuple(row[name] for name in columns[:5]) for row in rows if row["record"] == "step")
    whole = [tuple(row[name] for name in columns[:5]) for row in csv.DictReader(series_csv(state).splitlines())]
    assert steps == sorted(whole)
    gpu = [row for row in rows if row["record"] == "gpu"]
    assert len({row["t_s"] for row in gpu}) == len(gpu) > 10
    assert all(float(row["gpu_power_w"]) > 0 and row["step_ns"] == "" and row["cpu_percent"] == "" for row in gpu)


def test_a_file_that_cannot_be_written_from_the_start_is_a_mistake(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        LiveFiles(tmp_path / "missing" / "m.prom", None)
    assert left.value.code == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_file_that_is_lost_on_the_way_does_not_stop_the_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tcompile_tui.cli_live._EVERY_S", 0.0)
    (tmp_path / "m").mkdir()
    files = LiveFiles(tmp_path / "m" / "m.prom", tmp_path / "steps.csv")
    state = replay(eager_process())
    (tmp_path / "m" / "m.prom").unlink()
    (tmp_path / "m").rmdir()
    files.update(state)
    files.update(state)
    assert len(files._problems) == 1 and "m.prom is not written any more" in files._problems[0]
    rows = list(csv.DictReader((tmp_path / "steps.csv").read_text().splitlines()))
    assert len(rows) == sum(len(arm.series) for process in state.processes.values() for arm in process.arms.values())

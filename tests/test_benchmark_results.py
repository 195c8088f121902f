"""The page of benchmark results: made from records alone, the newest of each machine's kind."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.benchmarks import results
from tests.benchmarks.record import Figure, Record, Table, read_records


def record(benchmark: str = "fidelity", device: str = "cpu", date: str = "2026-12-01T10:00+00:00", **more) -> Record:
    figures = more.pop("figures", (Figure("ratio", "1.001", "1.000 +- 0.005", True),))
    return Record(benchmark, device, "a machine", "2.13.0", "3.11.7", date, "python -m it", figures, **more)


def test_newest_record_of_each_benchmark_and_device_is_kept():
    old, new = record(), record(date="2026-12-02T10:00+00:00")
    gpu = record(device="cuda", date="2026-11-01T10:00+00:00")
    assert results.merged([new, old, gpu]) == [new, gpu]


def test_what_was_never_run_says_so():
    page = results.page([record()])
    rows = [line for line in page.splitlines() if line.endswith("|")]
    assert sum("| not run |" in row for row in rows) == sum(len(each.devices) for each in results.BENCHMARKS) - 1
    assert not any("not run" in row and "(fidelity)" in row and "a CPU" in row for row in rows)


def test_bar_that_is_missed_is_counted_and_marked():
    missed = Figure("ratio", "1.2", "<= 1.02", False)
    page = results.page([record(figures=(missed, Figure("other", "3", "<= 5", True), Figure("no bar", "3")))])
    assert "1 hold it and 1 do not" in " ".join(page.split())
    assert "| ratio | 1.2 | <= 1.02 | NO | a machine |" in page


def test_merging_takes_records_of_another_machine_and_keeps_their_tables(tmp_path: Path, monkeypatch):
    (tmp_path / "results.jsonl").write_bytes(msgspec.json.encode(record()) + b"\n")
    other = record(device="cuda", tables=(Table(("a", "b"), (("c", "d"),)),))
    (tmp_path / "h200.json").write_bytes(msgspec.json.encode(other) + b"\n")
    monkeypatch.setattr("sys.argv", ["results", "--merge", str(tmp_path / "h200.json"), "--folder", str(tmp_path)])
    assert results.main() == 0
    assert read_records(tmp_path / "results.jsonl") == [record(), other]
    assert "| c | d |" in (tmp_path / "RESULTS.md").read_text()


def test_page_in_the_tree_is_that_of_its_records():
    folder = Path(results.__file__).parent
    assert (folder / "RESULTS.md").read_text() == results.page(read_records(folder / "results.jsonl"))


def test_a_benchmark_without_what_it_needs_is_not_run(capsys):
    zoo = next(benchmark for benchmark in results.BENCHMARKS if benchmark.name == "zoo")
    assert results.run(zoo, "cpu", None) == []
    assert "needs --python" in capsys.readouterr().err

"""Does the script that a report is turned into find what the run found?

    python -m tests.benchmarks.script_agreement [MODEL[:MODE] ...] [--device D] [--preset P] [--rows FILE]

Each sample model is run, `report --format script` writes its script, and the script is started with --cold-start, as
a person would. The speedups agree if each lies in the other's 95 % interval; two cold starts agree if they differ by
no more than two single starts do (95 %, at the spread that the break-even counts on). A row is kept in FILE (default:
script_agreement.jsonl beside this file) when it is done, and RESULTS_SCRIPT_AGREEMENT.md shows them all.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from tcompile_tui.core.breakeven import PRIOR_COST_SPREAD
from tests.benchmarks.program import PROJECT, Ran, run_program
from tests.benchmarks.record import Figure, Record, parser, publish, record, table
from tests.benchmarks.rows import add_row, read_rows, today
from tests.benchmarks.tables import markdown_table

_HERE = Path(__file__).parent
_ROWS, _PAGE = _HERE / "script_agreement.jsonl", _HERE / "RESULTS_SCRIPT_AGREEMENT.md"
_CELLS = ("pointwise_chain", "tiny_launch_bound:reduce-overhead", "transformer_block", "convnet")
_DEFAULT_MODE = "default"
_BUDGET_S, _SLACK_S, _SCRIPT_LIMIT_S = 300.0, 60.0, 400.0
_COLD_TOLERANCE = 1.96 * math.sqrt(2) * PRIOR_COST_SPREAD

_SPEEDUP = re.compile(r"^speedup ([\d.]+)x \(([\d.]+)x to ([\d.]+)x\)", re.MULTILINE)
_COLD_START = re.compile(r"^cold start ([\d.]+) s", re.MULTILINE)
_DIFFERENCE = re.compile(r"^- (.+)$", re.MULTILINE)

_HEADS = ("model", "mode", "preset", "run", "script", "run's cold start", "script's", "agree")

Row: TypeAlias = dict[str, Any]


def measure(cell: str, device: str, preset: str) -> Row:
    """Run and script of one model. A row without `script` says in `error` why there is none."""
    name, _, mode = cell.partition(":")
    mode = mode or _DEFAULT_MODE
    began = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"sample_models/{name}.py", "--mode", mode, "--preset", preset, "--device", device]
        ran = run_program(arguments, Path(folder) / "runs", _BUDGET_S + _SLACK_S)
        said = _script_says(ran, Path(folder))
    found = ran.mode(mode)
    row = {
        "place": f"{ran.verdict.get('device')}, torch {ran.verdict.get('torch')}",
        "date": today(),
        "model": name,
        "mode": mode,
        "preset": preset,
        "decision": ran.decision,
        "run": _ends(found.get("speedup")),
        "run_cold_s": found.get("cold_start_s"),
        "script": None,
        "script_cold_s": None,
        "differences": _DIFFERENCE.findall(said),
        "error": None,
        "seconds": round(monotonic() - began),
    }
    speedup, cold = _SPEEDUP.search(said), _COLD_START.search(said)
    if speedup is None or cold is None:
        return {**row, "error": said.strip()[-500:]}
    return {**row, "script": [float(each) for each in speedup.groups()], "script_cold_s": float(cold[1])}


def _ends(speedup: dict[str, Any] | None) -> list[float] | None:
    return [speedup["value"], speedup["lo"], speedup["hi"]] if speedup else None


def _script_says(ran: Ran, folder: Path) -> str:
    """What the script prints, or why there is none."""
    run = next((folder / "runs").iterdir(), None) if (folder / "runs").exists() else None
    if run is None or not ran.verdict:
        return ran.error
    script = folder / "again.py"
    with script.open("w") as file:
        told = _python("-m", "tcompile_tui", "report", str(run), "--format", "script", out=file)
    return told or _python(str(script), "--cold-start")


def _python(*arguments: str, out: Any = subprocess.PIPE) -> str:
    """Its output; of a command that fails, or whose output goes to a file, the errors."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
            text=True, errors="replace", timeout=_SCRIPT_LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"did not end in {_SCRIPT_LIMIT_S:.0f} s"
    return done.stderr if done.returncode else done.stdout or ""


# ---------------------------------------------------------------- the page


def disagreements(row: Row) -> list[str]:
    """Where run and script contradict each other; nothing if they agree."""
    if row["script"] is None or row["run"] is None:
        return ["not compared"]
    (run, run_low, run_high), (script, low, high) = row["run"], row["script"]
    found = []
    if not run_low <= script <= run_high:
        found.append("the script's speedup is outside of the run's interval")
    if not low <= run <= high:
        found.append("the run's speedup is outside of the script's interval")
    if row["run_cold_s"] is None or abs(math.log(row["script_cold_s"] / row["run_cold_s"])) > _COLD_TOLERANCE:
        found.append("the cold starts differ")
    return found


def page(rows: Sequence[Row]) -> str:
    lines = ["# A run against the script that its report is turned into", ""]
    lines.append("`python -m tests.benchmarks.script_agreement`. Two cold starts agree within")
    lines.append(f"{100 * math.expm1(_COLD_TOLERANCE):.0f} %.")
    for place in sorted({row["place"] for row in rows}):
        lines += ["", *_section(place, [row for row in rows if row["place"] == place])]
    return "\n".join(lines) + "\n"


def _section(place: str, rows: Sequence[Row]) -> Iterator[str]:
    agree = sum(not disagreements(row) for row in rows)
    yield from (f"## {place}", "", f"{max(row['date'] for row in rows)}. {agree} of {len(rows)} agree.", "")
    yield markdown_table(_HEADS, map(_cells, rows))
    notes = [f"- {row['model']}: {text}" for row in rows for text in [*row["differences"], row["error"]] if text]
    if notes:
        yield from ("", "What the scripts say beside:", "", *notes)


def _cells(row: Row) -> list[str]:
    wrong = disagreements(row)
    return [
        row["model"], row["mode"], row["preset"], _interval(row["run"]), _interval(row["script"]),
        _seconds(row["run_cold_s"]), _seconds(row["script_cold_s"]), f"no: {'; '.join(wrong)}" if wrong else "yes",
    ]  # fmt: skip


def _interval(ends: Sequence[float] | None) -> str:
    return "{:.3f}x ({:.3f} to {:.3f})".format(*ends) if ends else "n/a"


def _seconds(seconds: float | None) -> str:
    return f"{seconds:.1f} s" if seconds is not None else "n/a"


def as_record(rows: Sequence[Row], device: str) -> Record:
    agree = sum(not disagreements(row) for row in rows)
    name = "the reproduction script finds the run's speedup and cold start"
    figure = Figure(name, f"{agree} of {len(rows)}", "all", agree == len(rows))
    return record("script_agreement", [figure], [table(_HEADS, list(map(_cells, rows)))], device=device)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=_CELLS, metavar="MODEL[:MODE]")
    options.add_argument("--device", default="cpu")
    options.add_argument("--preset", default="quick")
    options.add_argument("--rows", type=Path, default=_ROWS, metavar="FILE", help="one row of JSON a line")
    options.add_argument("--seconds", type=float, default=3600.0, help="what is not begun then is left out")
    options.add_argument("--table-only", action="store_true", help="run nothing, write the page again")
    asked = options.parse_args()
    until = monotonic() + asked.seconds
    for cell in asked.models if not asked.table_only else ():
        if monotonic() > until:
            print(f"{asked.seconds:.0f} s are over", file=sys.stderr)
            break
        row = measure(cell, asked.device, asked.preset)
        add_row(asked.rows, row)
        print(f"{row['seconds']:>4} s  {' | '.join(_cells(row))}", file=sys.stderr, flush=True)
    rows = read_rows(asked.rows)
    _PAGE.write_text(page(rows))
    if not asked.table_only:
        publish(as_record(rows, asked.device), asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())

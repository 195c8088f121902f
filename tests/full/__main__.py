"""`python -m tests.full [--cases DIR] [NAME...]`: run the cases one after another and print a table."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil

from tests.benchmarks.record import Figure, parser, record, table, write

from .expectations import Case, cases_in

_CASES = Path(__file__).parent.parent / "data" / "cases"
_MARKER = "TCOMPILE_TUI_FULL_CASE"
_LIMIT_S = 400.0
_SHOWN_CHARS = 110


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `answer` is decision, headline and findings (or the error line) as one text."""

    status: int
    answer: str
    seconds: float
    left_behind: int


def run_case(case: Case, folder: Path) -> Outcome:
    """Run the program on one case, as a person would."""
    marker = secrets.token_hex(8)
    started = monotonic()
    with tempfile.TemporaryDirectory() as runs_dir:
        command = [
            sys.executable, "-m", "tcompile_tui", "run", str(folder / case.file), "--preset", "smoke", "--json", "-",
            "--runs-dir", runs_dir, *(argument.replace("{cases}", str(folder)) for argument in case.arguments),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, env={**os.environ, _MARKER: marker}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False,
            )  # fmt: skip
            status, answer = done.returncode, _answer(done.stdout, done.stderr)
        except subprocess.TimeoutExpired:
            status, answer = -1, f"the program did not end in {_LIMIT_S:.0f} s"
    return Outcome(status, answer, monotonic() - started, len(_processes_with(marker)))


def _answer(out: str, err: str) -> str:
    if out.strip():
        try:
            verdict: dict[str, Any] = json.loads(out)
        except ValueError:
            return f"stdout is not JSON: {out[:200]!r}"
        return "; ".join([f"{verdict['decision']}: {verdict['headline']}", *map(_finding, verdict["findings"])])
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    return errors[-1] if errors else f"no answer: {err.strip()[-200:]}"


def _finding(finding: dict[str, Any]) -> str:
    place = f" ({Path(finding['file']).name}:{finding['line']})" if finding["file"] else ""
    return f"[{finding['id']}] {finding['title']}: {finding['evidence']}{place}"


def _processes_with(marker: str) -> list[psutil.Process]:
    """Living processes that were started for one case, wherever they went."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_MARKER) == marker:
                found.append(process)
        except psutil.Error:
            continue
    return found


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong with an outcome; nothing if it is as expected."""
    found = []
    allowed = [case.status] if case.status is not None else range(7)
    if outcome.status not in allowed:
        found.append("status")
    if not re.search(case.pattern, outcome.answer):
        found.append("answer")
    if outcome.left_behind:
        found.append(f"{outcome.left_behind} processes left behind")
    return found


def main() -> int:
    asked = parser(__doc__)
    asked.add_argument("--cases", type=Path, default=_CASES, metavar="DIR", help="folder with the case files")
    asked.add_argument("--whole", action="store_true", help="print the whole answer of a case that fails")
    asked.add_argument("names", nargs="*", metavar="NAME", help="only cases that begin like this")
    options = asked.parse_args()
    cases = cases_in(options.cases.absolute(), tuple(options.names))
    failed, rows = 0, []
    heads = ("case", "expected", "got", "ok")
    print(f"| {' | '.join(heads)} |\n|---|---|---|---|")
    for case in cases:
        outcome = run_case(case, options.cases.absolute())
        wrong = faults(case, outcome)
        failed += bool(wrong)
        expected = f"{case.status} `{case.pattern}`" if case.status is not None else "a named end"
        got = f"{outcome.status} {outcome.answer[:_SHOWN_CHARS]} ({outcome.seconds:.0f} s)"
        row = [case.name, expected, got, "no: " + ", ".join(wrong) if wrong else "yes"]
        rows.append([cell.replace("|", "\\|").replace("\n", " ") for cell in row])
        print(f"| {' | '.join(rows[-1])} |", flush=True)
        if wrong and options.whole:
            print(f"{case.name}: {outcome.answer}", file=sys.stderr, flush=True)
    print(f"\n{len(cases) - failed} of {len(cases)} as expected")
    figure = Figure(
        "hazard cases: named end, run folder readable, no process left",
        f"{len(cases) - failed} of {len(cases)}", "all", not failed,
    )  # fmt: skip
    write(record("cases", [figure], [table(heads, rows)]), options.json)
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

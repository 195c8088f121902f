"""What the program says of architectures that people use: `python -m tests.benchmarks.zoo [--real] --python EXE`.

    python -m tests.benchmarks.zoo [--real] [--python EXE] [--device D] [--rows FILE] [--seconds S] [NAME...]

EXE is an interpreter with torch, timm, torchvision and transformers (default: this one). Every row is the command that
a person would type, run with the smoke preset: at small sizes, or with --real at those that people run on a GPU. Its
result is one line of JSON in FILE (default: zoo.jsonl or zoo_real.jsonl beside this file), and those that are there
already are not run again. At the end the table is written to zoo.md or zoo_real.md beside it.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tests.benchmarks.program import run_program
from tests.benchmarks.record import Figure, Record, parser, publish, record
from tests.benchmarks.rows import add_row, read_rows, today
from tests.benchmarks.zoo_models import REAL, SMALL, Model

_HERE = Path(__file__).parent
_SLACK_S = 30.0
_MIN_S = 30.0


@dataclass(frozen=True)
class Set:
    """Models with what is said of all of them. `budget_s` is for one run, as `--budget` has it."""

    name: str
    title: str
    models: tuple[Model, ...]
    budget_s: int
    says: str
    option: str = ""

    @property
    def rows(self) -> Path:
        return _HERE / f"{self.name}.jsonl"

    @property
    def page(self) -> Path:
        return _HERE / f"{self.name}.md"


SETS = {
    False: Set(
        "zoo", "Architectures", SMALL, 400,
        "Random weights, small sizes and a busy machine: what counts here is what the compiler does with a model, not"
        " the speed. (torchvision's own operators need a CUDA build of torch; there `nms` was a stand-in of a few"
        " lines, in the interpreter's environment.)",
    ),
    True: Set(
        "zoo_real", "Architectures at real sizes", REAL, 100,
        "Random weights. The smoke preset measures one process for some seconds: enough for a decision, no figure to"
        " quote.",
        " --real",
    ),
}  # fmt: skip


def run_model(model: Model, python: str, device: str, budget_s: float) -> dict[str, Any]:
    """Run the program as a person would; returns the row."""
    options = ["--preset", "smoke", "--budget", f"{budget_s:.0f}", "--device", device, "--python", python]
    with tempfile.TemporaryDirectory() as runs_dir:
        ran = run_program([*model.arguments, *options], Path(runs_dir), budget_s + _SLACK_S)
    mode, speedup = ran.mode(), ran.mode().get("speedup") or {}
    return {
        "kind": model.kind,
        "target": model.target,
        "options": model.options,
        "status": ran.status,
        "decision": ran.decision,
        "headline": ran.headline,
        "findings": [finding["id"] for finding in ran.findings],
        "graphs": mode.get("graphs"),
        "breaks": mode.get("graph_breaks"),
        "recompiles": mode.get("recompiles"),
        "agreement": mode.get("agreement"),
        "eager_ms": mode.get("eager_ms"),
        "speedup": [speedup["value"], speedup["lo"], speedup["hi"]] if speedup else None,
        "cold_start_s": mode.get("cold_start_s"),
        "torch": ran.verdict.get("torch"),
        "machine": ran.verdict.get("device"),
        "date": today(),
        "seconds": round(ran.seconds),
    }


# ---------------------------------------------------------------- the page


def table(of: Set, rows: Sequence[dict[str, Any]]) -> str:
    """The page that is kept: one row for each model, those without a result as "not run"."""
    known = {(row["target"], row["options"]): row for row in rows}
    timed = any(row.get("speedup") for row in rows)
    figures = " eager step | speedup | cold start |" if timed else ""
    lines = [
        f"# {of.title}",
        "",
        *_preamble(of, rows),
        "",
        f"| kind | model | graphs | breaks | recompiles | outputs |{figures} decision | findings |",
        f"|---|---|---:|---:|---:|---|{'---:|---:|---:|' if timed else ''}---|---|",
        *(_row(model, known.get((model.target, model.options)), timed) for model in of.models),
        "",
        "## Commands",
        "",
        f"Each is `tcompile-tui run ... --preset smoke --budget {of.budget_s} --python EXE` with:",
        "",
        "```sh",
        *(f"{model.target} {model.options}".strip() for model in of.models),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _preamble(of: Set, rows: Sequence[dict[str, Any]]) -> list[str]:
    places = sorted({f"torch {row['torch']} on {row['machine']}" for row in rows if row["torch"]})
    dates = sorted({row["date"] for row in rows if "date" in row})
    decided = sum(row["status"] == 0 for row in rows)
    missing = len(of.models) - len(rows)
    text = (
        f"`python -m tests.benchmarks.zoo{of.option} --python EXE`: {', '.join([*places, *dates[-1:]])}. {decided} of"
        f" the {len(rows)} models that were run came to a decision; {missing} were not run. {of.says}"
    )
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def _row(model: Model, row: dict[str, Any] | None, timed: bool) -> str:
    name = f"`{model.target}`" + (", training" if "--task train" in model.options else "")
    if row is None:
        return f"| {model.kind} | {name} | | | | |{' | | |' if timed else ''} not run | |"
    counts = ("n/a" if row[count] is None else str(row[count]) for count in ("graphs", "breaks", "recompiles"))
    ended = row["decision"] or "none"
    if row["status"] != 0:
        ended += f" ({row['headline'][:100]})".replace("|", "\\|").replace("\n", " ")
    figures = _figures(row) if timed else []
    cells = [model.kind, name, *counts, row["agreement"] or "n/a", *figures, ended, ", ".join(row["findings"])]
    return f"| {' | '.join(cells)} |"


def _figures(row: dict[str, Any]) -> list[str]:
    eager_ms, speedup, cold_s = row.get("eager_ms"), row.get("speedup"), row.get("cold_start_s")
    return [
        f"{eager_ms:.3g} ms" if eager_ms is not None else "n/a",
        "{:.3g}x ({:.3g} to {:.3g})".format(*speedup) if speedup else "n/a",
        f"{cold_s:.1f} s" if cold_s is not None else "n/a",
    ]


def as_record(of: Set, rows: Sequence[dict[str, Any]], device: str) -> Record:
    decided = sum(row["status"] == 0 for row in rows)
    name = f"architectures that come to a decision, of {len(of.models)} of {len({m.kind for m in of.models})} kinds"
    complete = decided == len(rows) == len(of.models)
    figure = Figure(name, f"{decided} of {len(rows)} that were run", "all", complete)
    return record(of.name, [figure], notes=(f"One row each in [{of.page.name}]({of.page.name}).",), device=device)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--real", action="store_true", help="the sizes that people run")
    options.add_argument("--python", default=sys.executable, metavar="EXE")
    options.add_argument("--rows", type=Path, metavar="FILE")
    options.add_argument("--device", default="cpu")
    options.add_argument("--seconds", type=float, default=36_000.0, help="what is not done then is left for later")
    options.add_argument("--table-only", action="store_true", help="run nothing, write the page again")
    options.add_argument("names", nargs="*", metavar="NAME", help="only models whose target holds one of these")
    asked = options.parse_args()
    of, until = SETS[asked.real], monotonic() + asked.seconds
    file = asked.rows or of.rows
    done = {(row["target"], row["options"]) for row in read_rows(file)}
    for model in of.models if not asked.table_only else ():
        wanted = not asked.names or any(name in model.target for name in asked.names)
        if not wanted or (model.target, model.options) in done:
            continue
        left_s = until - monotonic()
        if left_s < _MIN_S + _SLACK_S:
            print(f"{asked.seconds:.0f} s are over")
            break
        row = run_model(model, asked.python, asked.device, min(of.budget_s, left_s - _SLACK_S))
        add_row(file, row)
        print(f"{row['decision'] or 'none':<20} {row['seconds']:>4} s  {model.target}: {row['headline']}", flush=True)
    rows = read_rows(file)
    of.page.write_text(table(of, rows))
    if not asked.table_only:
        publish(as_record(of, rows, asked.device), asked.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())

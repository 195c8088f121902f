"""One self-contained HTML file: no script, no request, light and dark, readable on a phone."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from tcompile_tui.core.end_to_end import data_text
from tcompile_tui.core.findings import Finding, Severity
from tcompile_tui.core.reported_run import ReportedRun, environment_rows
from tcompile_tui.core.results import ModeResult, StartCost
from tcompile_tui.core.units import MISSING, count, duration, joules, milliseconds, percent, ratio
from tcompile_tui.report.formats import MissingLibraryError
from tcompile_tui.report.mode_rows import known_rows
from tcompile_tui.report.shape_table import HEAD, shape_notes, shape_rows
from tcompile_tui.report.text import compared_text, unbroken

TEMPLATE = "page.html.jinja"


def html_page(run: ReportedRun) -> str:
    """The whole page. Raises MissingLibraryError."""
    try:
        import jinja2
        from markupsafe import Markup

        from tcompile_tui.report.figures import drawings
    except ImportError as error:
        text = f"the html report needs {error.name}: pip install 'tcompile-tui[report]'; markdown needs nothing"
        raise MissingLibraryError(text) from error

    # Everything that a template prints is escaped; the drawings alone are markup, and hold no text of the user's.
    def literal(value: Any) -> Any:
        return value if isinstance(value, Markup) or not isinstance(value, str) else _printable(value)

    environment = jinja2.Environment(
        finalize=literal, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files("tcompile_tui.report").joinpath(TEMPLATE).read_text(encoding="utf-8"))
    figures = [
        {"title": each.title, "caption": each.caption, "svgs": {name: Markup(svg) for name, svg in each.svgs.items()}}
        for each in drawings(run)
    ]
    verdict = run.verdict
    rows = known_rows(verdict.modes)
    page: str = template.render(
        run=run,
        verdict=verdict,
        headline=unbroken(verdict.headline),
        tone=_tone(run),
        facts=_facts(run),
        figures=figures,
        modes=[judged.result.mode.value for judged in verdict.modes],
        best=verdict.best_mode.value if verdict.best_mode is not None else None,
        rows=[(label.strip(), label.startswith(" "), [*map(unbroken, texts)]) for label, texts in rows],
        shapes=_shapes(run),
        findings=[_finding(run, finding) for finding in verdict.findings],
        environment=environment_rows(run),
        version=run.surroundings.program_version if run.surroundings is not None else None,
    )
    return page


def _shapes(run: ReportedRun) -> dict[str, Any] | None:
    shapes = run.verdict.shapes
    if shapes is None:
        return None
    return {"head": ("dynamic", *HEAD[1:]), "rows": shape_rows(shapes), "notes": shape_notes(shapes)}


def _printable(text: str) -> str:
    """Without control characters, which a page cannot hold."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t\xa0")


def _tone(run: ReportedRun) -> str:
    word = run.verdict.decision.value
    return "good" if word == "ENABLE" else "fair" if word in ("ENABLE WITH CARE", "TEST CAREFULLY") else "bad"


def _facts(run: ReportedRun) -> list[tuple[str, str, str]]:
    """(what, figure, what it rests on), most important first."""
    result, judged = run.shown_result, run.verdict.best
    if result is None or result.speedup is None or judged is None:
        return []
    speedup, found = result.speedup, judged.planned_break_even
    rests_on = run.verdict.usual_text.strip() or compared_text(result)
    never = found is not None and found.steps is None
    after = "never" if never else f"{count(found.steps)} steps" if found is not None else MISSING
    step_ms = result.end_to_end.eager_mean_ms
    wall = duration(found.steps * step_ms / 1e3) if found and found.steps and step_ms else ""
    gain = judged.planned_gain
    plan = f"{count(run.verdict.planned_steps)} steps{' (assumed)' if run.verdict.assumed_plan else ''}"
    energy = result.energy if result.energy is not None and result.energy.saved_share is not None else None
    facts = [
        ("speedup", ratio(speedup.value), f"{ratio(speedup.lo)} to {ratio(speedup.hi)}, {rests_on}"),
        *_data_facts(result),
        ("one step", _step(result.compiled_ms), f"eager {_step(result.eager_ms)}"),
        ("cold start", _start(result.cold_start), f"warm {_start(result.warm_start)}"),
        ("paid back after", after, wall),
        ("saves", percent(gain) if gain is None or gain >= 0 else "nothing", f"of {plan}"),
        ("outputs", result.accuracy.agreement.value if result.accuracy else "not checked", "against eager"),
    ]  # fmt: skip
    if energy is not None:
        facts.append(("energy of a step", joules(energy.compiled_j), f"eager {joules(energy.eager_j)}"))
    return facts


def _data_facts(result: ModeResult) -> list[tuple[str, str, str]]:
    end_to_end = result.end_to_end.speedup
    if result.data is None or end_to_end is None:
        return []
    return [("end to end", ratio(end_to_end.value), f"with {data_text(result.data)}")]


def _step(value_ms: float | None) -> str:
    return milliseconds(value_ms * 1e6 if value_ms is not None else None)


def _start(start: StartCost | None) -> str:
    return duration(start.total_s if start is not None else None)


def _finding(run: ReportedRun, finding: Finding) -> dict[str, Any]:
    excerpt = run.excerpt(finding)
    lines = list(enumerate(excerpt.lines, excerpt.first)) if excerpt is not None else []
    return {
        "severity": finding.severity.value,
        "open": finding.severity in (Severity.BLOCKER, Severity.WARNING, Severity.ADVICE),
        "title": finding.title,
        "place": run.place(finding),
        "lines": [(number, line, number == finding.line) for number, line in lines],
        "evidence": finding.evidence,
        "advice": finding.advice,
        "link": finding.link if finding.link and finding.link.startswith("https://") else None,
    }

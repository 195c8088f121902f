"""A run as JUnit XML: the decision is one test case, every condition of the gate another."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from tcompile_tui.core.gate import GateCheck
from tcompile_tui.core.verdict import Verdict


def junit_xml(name: str, verdict: Verdict, checks: Sequence[GateCheck], seconds: float) -> bytes:
    """`name` is that of the run. A run that reached no decision is an error, a condition that does not hold a
    failure; without a decision there was nothing to hold conditions to, and they are skipped."""
    failures = sum(not check.passed for check in checks) if verdict.is_answer else 0
    counts = {
        "tests": str(1 + len(checks)),
        "failures": str(failures),
        "errors": str(int(not verdict.is_answer)),
        "skipped": str(0 if verdict.is_answer else len(checks)),
        "time": f"{seconds:.3f}",
    }
    root = Xml.Element("testsuites", {"name": "tcompile-tui", **counts})
    suite = Xml.SubElement(root, "testsuite", {"name": _valid(name), **counts})
    decision = _case(suite, name, "decision", seconds)
    if not verdict.is_answer:
        _say(decision, "error", [f"{verdict.decision.value}: {verdict.headline}"])
    Xml.SubElement(decision, "system-out").text = _valid(f"{verdict.decision.value}\n{verdict.headline}")
    for check in checks:
        case = _case(suite, name, check.name, 0.0)
        if not verdict.is_answer:
            Xml.SubElement(case, "skipped", {"message": "the run reached no decision"})
        elif not check.passed:
            _say(case, "failure", check.reasons)
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(suite: Xml.Element, run: str, name: str, seconds: float) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", {"classname": _valid(run), "name": name, "time": f"{seconds:.3f}"})


def _say(case: Xml.Element, kind: str, reasons: Sequence[str]) -> None:
    text = _valid("\n".join(reasons))
    Xml.SubElement(case, kind, {"message": text.partition("\n")[0], "type": kind}).text = text


def _valid(text: str) -> str:
    """Without what XML 1.0 cannot hold, however it is written: control characters and lone surrogates."""
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff" and c < "\ufffe"))

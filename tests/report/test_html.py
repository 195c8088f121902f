"""The html report: one file that asks for nothing, and takes no text for markup."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tcompile_tui.core.verdict import Decision
from tcompile_tui.host.recorded import read_reported_run
from tcompile_tui.report.formats import MissingLibraryError
from tcompile_tui.report.html import html_page
from tests.report.reported import hostile, recorded, reported
from tests.ui.recorded import CONVNET, TWO_BREAKS, recorded_run
from tests.ui.verdict_cases import CASES

# Elements and attributes through which a page can ask for something.
_ASKING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form", "image"}
_ADDRESSES = {"src", "srcset", "data", "action", "poster", "background", "ping"}


class Page(HTMLParser):
    """Elements with their attributes, and the text outside of style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.styles = ""
        self._in_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles += data
        else:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


@pytest.fixture(autouse=True)
def _plots() -> None:
    pytest.importorskip("matplotlib")


def assert_asks_for_nothing(page: Page) -> None:
    assert not {tag for tag, _ in page.elements} & _ASKING
    for tag, attributes in page.elements:
        assert not _ADDRESSES & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "xlink:href"):
            address = attributes.get(name) or ""
            assert address.startswith("#") or (tag == "a" and address.startswith("https://")) or not address
        assert "url(" not in (attributes.get("style") or "").replace("url(#", "")
    assert "url(" not in page.styles and "@import" not in page.styles


def test_a_page_has_its_figures_in_both_widths_and_asks_for_nothing(tmp_path: Path) -> None:
    html = html_page(recorded(CONVNET, tmp_path))
    page = Page(html)
    assert_asks_for_nothing(page)
    assert (page.count("figure"), page.count("svg")) == (3, 6)
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html and "width=device-width" in html
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) > 100
    for text in (
        "ENABLE", "3.69x", "after 10,912\xa0steps (14.7\xa0s)", 'model.compile(mode="reduce-overhead")',
        "compiled, cold start", "assumed plan", "Inductor", "NVIDIA H200", "2.11.0+cu130",
    ):  # fmt: skip
        assert text in page.text, text
    assert "#0102" not in html, "a stand-in for a colour of the page's own was left"


def test_a_finding_has_its_lines_where_the_file_is_that_of_the_run(tmp_path: Path) -> None:
    folder = recorded_run(TWO_BREAKS, tmp_path)
    run = folder.path / "run.json"
    root = str(Path(__file__).parents[2])
    run.write_text(run.read_text().replace('"/home/you"', f'"{root}"').replace("2026-12-02T", "2999-12-02T"))
    page = Page(html_page(read_reported_run(folder.path)))
    assert page.count("mark") >= 2 and "   16          print(" in page.text
    run.write_text(run.read_text().replace("2999-12-02T", "1999-12-02T"))  # the file is newer: its lines may be others
    assert Page(html_page(read_reported_run(folder.path))).count("mark") == 0


def test_text_is_never_markup() -> None:
    page = Page(html_page(hostile()))
    assert_asks_for_nothing(page)
    assert page.count("a") == 0, "an address of another kind is no link"
    assert "<script>alert(1)</script>" in page.text and "\x1b[31m" not in page.text


@pytest.mark.parametrize("decision", [Decision.RAN_EAGER, Decision.FAILED, Decision.STOPPED, Decision.CANNOT_COMPILE])
def test_a_run_without_a_comparison_has_a_page_too(decision: Decision) -> None:
    page = Page(html_page(reported(CASES[decision]())))
    assert_asks_for_nothing(page)
    assert decision.value in page.text


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingLibraryError, match=r"needs jinja2: pip install 'tcompile-tui\[report\]'"):
        html_page(hostile())

"""The folders and Python files below the working folder, read as they are opened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tcompile_tui.ui.model_files import Entry, list_entries


@dataclass(frozen=True)
class _Marks:
    closed: str
    opened: str
    chosen: str


_MARKS = _Marks("▸ ", "▾ ", "● ")
_ASCII_MARKS = _Marks("+ ", "- ", "* ")
_NO_FOLDER = Entry(Path(), is_folder=False)


class ModelTree(Tree[Entry]):
    """Enter on a file posts Chosen."""

    BINDINGS: ClassVar[list[Binding]] = [  # type: ignore[assignment]
        Binding("right", "open", "Open folder", show=False),
        Binding("left", "close", "Close folder", show=False),
    ]
    DEFAULT_CSS = """
    ModelTree { background: transparent; scrollbar-size: 1 1; overflow-x: hidden; }
    ModelTree:focus { background-tint: transparent; }
    ModelTree:nocolor:focus > .tree--cursor { text-style: reverse; }
    """

    @dataclass
    class Chosen(Message):
        """A Python file was chosen."""

        path: Path

    def __init__(self, folder: Path, ascii_only: bool = False) -> None:
        self._marks = _ASCII_MARKS if ascii_only else _MARKS  # the base class asks for labels at once
        self._chosen: Path | None = None
        super().__init__(str(folder), data=Entry(folder, is_folder=True), id="files")
        self.show_root = False
        self.show_guides = False
        self.guide_depth = 2

    def on_mount(self) -> None:
        self._load(self.root)

    def mark(self, path: Path | None) -> None:
        """Show which file is the one that the form is about, and open the folders above it."""
        if path is not None and path != self._chosen:
            self._reveal(self.root, path)
        changed, self._chosen = {self._chosen, path}, path
        for line in range(self.last_line + 1):
            node = self.get_node_at_line(line)
            if node is not None and node.data is not None and node.data.path in changed:
                node.refresh()

    def render_label(self, node: TreeNode[Entry], base_style: Style, style: Style) -> Text:
        entry = node.data or _NO_FOLDER
        chosen = not entry.is_folder and entry.path == self._chosen
        if entry.is_folder:
            mark = self._marks.opened if node.is_expanded else self._marks.closed
        else:
            mark = self._marks.chosen if chosen else "  "
        weight = Style(bold=True) if chosen or entry.is_folder else Style()
        return Text.assemble((mark, base_style), (str(node.label), style + weight))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Entry]) -> None:
        event.stop()
        if not event.node.children:
            self._load(event.node)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Entry]) -> None:
        event.stop()
        if event.node.data is not None and not event.node.data.is_folder:
            self.post_message(self.Chosen(event.node.data.path))

    def action_open(self) -> None:
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self.cursor_node.expand()

    def action_close(self) -> None:
        """Close the folder, or from inside go to it."""
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded:
            node.collapse()
        elif node.parent is not None and not node.parent.is_root:
            self.move_cursor(node.parent)

    def _load(self, node: TreeNode[Entry]) -> None:
        if node.data is not None:
            self.run_worker(self._list(node, node.data.path), group="tree")

    async def _list(self, node: TreeNode[Entry], folder: Path) -> None:
        self._fill(node, await asyncio.to_thread(list_entries, folder))

    def _fill(self, node: TreeNode[Entry], entries: list[Entry]) -> None:
        if node.children:
            return
        for entry in entries:
            node.add(Text(entry.path.name), data=entry, allow_expand=entry.is_folder)
        if not entries and node is self.root:
            node.add_leaf(Text("no Python files here"))
        if not node.is_expanded:  # expanding asks for the entries, and an empty folder would be read for ever
            node.expand()
        if self.cursor_line < 0 and entries:
            self.cursor_line = 0
        if self._chosen is not None:
            self._reveal(node, self._chosen)

    def _reveal(self, node: TreeNode[Entry], path: Path) -> None:
        """As far as the folders have been read; `_fill` goes on from there."""
        for child in node.children:
            if child.data is None or not (child.data.path == path or child.data.path in path.parents):
                continue
            if child.data.is_folder:
                child.expand()
                self._reveal(child, path)
            elif not self.has_focus:
                # The lines are known after the next refresh.
                self.call_after_refresh(self.move_cursor, child)

"""Where the target is written: a file, a dotted name, a model in either; completed while typing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding
from textual.suggester import Suggester
from textual.widgets import Input

from tcompile_tui.ui.model_files import complete


class TargetSuggester(Suggester):
    """Completes paths, dotted names and the models of a file."""

    def __init__(self, cwd: Path) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._cwd = cwd

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(complete, value, self._cwd)


class TargetInput(Input):
    """Tab takes the completion as in a shell; without one it goes to the next field."""

    BINDINGS: ClassVar[list[Binding]] = [Binding("tab", "complete", "Complete", show=False)]  # type: ignore[assignment]

    def action_complete(self) -> None:
        before = self.value
        if self.cursor_at_end:
            self.action_cursor_right()
        if self.value == before:
            self.screen.focus_next()

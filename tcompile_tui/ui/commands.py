"""One list of commands a screen feeds its key bindings, the footer, the palette and the help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from textual.app import App
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

Result = TypeVar("Result")


@dataclass(frozen=True)
class Command:
    """`key` may list several, separated by commas; `label` is for the footer, `help` for palette and help.
    A command with a `priority` is taken before the focused widget sees the key."""

    key: str
    action: str
    label: str
    help: str
    show: bool = True
    priority: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key.strip() for key in self.key.split(","))

    @property
    def binding(self) -> Binding:
        return Binding(self.key, self.action, self.label, show=self.show, tooltip=self.help, priority=self.priority)


class CommandScreen(Screen[Result]):
    """A screen whose keys come from its SCREEN_COMMANDS. `HELP` says in a few lines what the screen shows and what its
    numbers mean."""

    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = ()
    HELP: ClassVar[str] = ""

    def __init_subclass__(cls, **arguments: Any) -> None:
        cls.BINDINGS = [command.binding for command in cls.SCREEN_COMMANDS]
        super().__init_subclass__(**arguments)


def commands_of(screen: Screen[Any], app: App[Any]) -> Iterable[Command]:
    """The screen's own commands, then the application's on keys that the screen leaves to it: those that do something
    on the screen as it is."""
    own: tuple[Command, ...] = getattr(screen, "SCREEN_COMMANDS", ())
    taken = {key for command in own for key in command.keys}
    everywhere: tuple[Command, ...] = getattr(app, "COMMANDS_EVERYWHERE", ())
    general = tuple(command for command in everywhere if not taken.intersection(command.keys))
    return (command for command in (*own, *general) if screen.check_action(command.action, ()) is not False)


class CommandProvider(Provider):
    """Puts the commands of the screen into the palette."""

    async def discover(self) -> Hits:
        for command in commands_of(self.screen, self.app):
            yield DiscoveryHit(command.label, self._run(command), help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in commands_of(self.screen, self.app):
            score = matcher.match(f"{command.label} {command.help}")
            if score > 0:
                yield Hit(score, matcher.highlight(command.label), self._run(command), help=command.help)

    def _run(self, command: Command) -> partial[Any]:
        return partial(self.screen.run_action, command.action)

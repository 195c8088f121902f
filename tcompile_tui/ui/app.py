"""The application: which screen comes when. Everything else is in the screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.command import CommandPalette
from textual.screen import Screen

from tcompile_tui.config import Config
from tcompile_tui.ui.commands import Command, CommandProvider
from tcompile_tui.ui.signals import Signals
from tcompile_tui.ui.terminal import in_ascii, is_ascii_only
from tcompile_tui.ui.themes import remember_theme, starting_theme

if TYPE_CHECKING:  # the first frame of Setup waits for nothing that it does not show
    from tcompile_tui.core.state import RunState
    from tcompile_tui.host.run_folder import RunFolder
    from tcompile_tui.ui.feeds import Feed

NARROW_COLUMNS = 100


class TCompileApp(App[None]):
    """Opens on `first`: Setup for a target (or none), or a run to follow or replay."""

    CSS_PATH = "app.tcss"
    TITLE = "tcompile-tui"
    COMMANDS: ClassVar[set[Any]] = {CommandProvider}
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW_COLUMNS, "-wide")]  # noqa: RUF012 (an instance variable of App)
    COMMANDS_EVERYWHERE: ClassVar[tuple[Command, ...]] = (
        Command("question_mark", "app.show_help", "Help", "Keys and numbers of this screen"),
        Command("ctrl+t", "app.change_theme", "Theme", "Choose the colours; kept for the next time", show=False),
        Command("ctrl+q", "app.quit", "Quit", "Leave; a run that was started goes on", show=False),
        Command("ctrl+z", "app.suspend_process", "Suspend", "To the shell; its command fg leads back", show=False),
    )
    BINDINGS: ClassVar[list[Binding]] = [command.binding for command in COMMANDS_EVERYWHERE]  # type: ignore[assignment]

    def __init__(
        self,
        runs_dir: Path,
        target: str | None = None,
        feed: Feed | None = None,
        ascii_only: bool | None = None,
        config: Config | None = None,
    ) -> None:
        super().__init__()
        self.runs_dir = runs_dir
        self.config = config if config is not None else Config(Path())
        asked = ascii_only if ascii_only is not None else self.config.ascii
        self.ascii_only = is_ascii_only() if asked is None else asked
        self._target = target
        self._feed = feed
        self.set_class(self.ascii_only, "-ascii")
        if self.ascii_only:
            self.driver_class = in_ascii(self.driver_class)
        self._start_theme = starting_theme(self.config)
        if self._start_theme in self.available_themes:
            self.theme = self._start_theme

    def on_mount(self) -> None:
        self.push_screen(self._first_screen())
        if not self.is_headless:
            Signals(self)
        self.theme_changed_signal.subscribe(self, lambda theme: remember_theme(theme.name, self.config))
        self._tell_problems()

    def _tell_problems(self) -> None:
        """What config.toml has wrong."""
        problems = list(self.config.problems)
        theme = self.config.theme
        if theme is not None and theme not in self.available_themes:
            known = ", ".join(sorted(self.available_themes))
            problems.append(self.config.complaint("theme", f"'{theme}' is none of {known}"))
        for problem in problems:
            self.notify(problem, title="config", severity="warning", timeout=15, markup=False)

    def _first_screen(self) -> Screen[None]:
        if self._feed is not None:
            from tcompile_tui.ui.screens.run import RunScreen

            return RunScreen(self._feed)
        from tcompile_tui.ui.screens.setup import SetupScreen

        return SetupScreen(self._target)

    # ------------------------------------------------------------ where screens lead

    def show_setup(self, target: str | None = None, complaint: str = "") -> None:
        """`complaint` is why the last run of it came to nothing."""
        from tcompile_tui.ui.screens.setup import SetupScreen

        self.switch_screen(SetupScreen(target, complaint))

    def follow(self, path: Path) -> None:
        """Watch a run that goes on."""
        from tcompile_tui.ui.feeds import LiveFeed
        from tcompile_tui.ui.screens.run import RunScreen

        self.switch_screen(RunScreen(LiveFeed(path)))

    def replay(self, path: Path, speed: float = 1.0) -> None:
        from tcompile_tui.ui.feeds import ReplayFeed
        from tcompile_tui.ui.screens.run import RunScreen

        self.switch_screen(RunScreen(ReplayFeed(path, speed=speed)))

    def show_verdict(self, folder: RunFolder, state: RunState) -> None:
        from tcompile_tui.ui.screens.verdict import VerdictScreen

        self.switch_screen(VerdictScreen(folder, state))

    def show_runs(self) -> None:
        from tcompile_tui.ui.screens.runs import RunsScreen

        self.push_screen(RunsScreen())

    def show_caches(self, about: RunFolder | None = None) -> None:
        """`about` is the run that is on the screen."""
        from tcompile_tui.ui.screens.caches import CachesScreen

        self.push_screen(CachesScreen(about))

    # ------------------------------------------------------------ what Textual draws by itself

    def get_key_display(self, binding: Binding) -> str:
        """In words where the terminal has no signs for keys."""
        display = super().get_key_display(binding)
        return binding.key if self.ascii_only and not display.isascii() else display

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Search for commands"))

    def action_show_help(self) -> None:
        from tcompile_tui.ui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

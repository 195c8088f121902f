"""Setup: choose a model, say what is planned, run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from tcompile_tui.ui.commands import Command, CommandScreen
from tcompile_tui.ui.widgets.command_bar import CommandBar

if TYPE_CHECKING:
    from tcompile_tui.ui.app import TCompileApp
    from tcompile_tui.ui.launch import LaunchedRun
    from tcompile_tui.ui.setup_form import FormValues
    from tcompile_tui.ui.target_facts import TargetFacts
    from tcompile_tui.ui.widgets.choices import Option
    from tcompile_tui.ui.widgets.model_tree import ModelTree
    from tcompile_tui.ui.widgets.setup_fields import SetupFields

_TITLE = "Does torch.compile pay off?"
_TALL_LINES = 30
_TYPING_PAUSE_S = 0.2
_POLL_S = 0.05
_INSPECTION = "inspection"
# For the thread that writes the first frame, before the form is imported and keeps the interpreter busy.
_WRITE_S = 0.01


class DevicesFound(Message):
    """What the driver says there is."""

    def __init__(self, options: tuple[Option, ...]) -> None:
        super().__init__()
        self.options = options


class Title(Static):
    """Posts Drawn when it is on the screen for the first time: Textual tells what is shown after it has drawn it."""

    class Drawn(Message):
        pass

    def on_mount(self) -> None:
        self._told = False

    def on_show(self) -> None:
        if not self._told:
            self._told = True
            self.post_message(self.Drawn())


class SetupScreen(CommandScreen[None]):
    """Opens with `target` in the form, or with the files to choose from. `complaint` is one line about what the form
    holds: it stands there until something is changed."""

    AUTO_FOCUS = ""
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL_LINES, "-tall")]  # noqa: RUF012
    SCREEN_COMMANDS: ClassVar[tuple[Command, ...]] = (
        Command("r", "run", "Run", "Start the benchmark that the form describes"),
        Command(
            "i", "inspect", "Input", "Build the model in a process of its own and propose its inputs, or stop that"
        ),
        Command("y", "copy", "Copy", "Copy the command line to the clipboard (OSC 52)"),
        Command("h", "history", "History", "The runs that were recorded"),
        Command("x", "caches", "Caches", "What torch.compile keeps on disk, and clearing it"),
        Command("f", "toggle_files", "Files", "Show or hide the files", show=False),
        Command("slash", "focus_target", "Path", "Write the path of the model"),
        Command("q,ctrl+q", "app.quit", "Quit", "Leave; a run that was started goes on"),
        Command("escape", "leave_field", "Done", "Leave the field, so that letters are keys again"),
    )
    HELP = """\
Choose the file that holds your model, then press r. Nothing of it is imported before the run starts.
A model is an nn.Module class without required arguments, or a function that returns one (make_model).
Inputs come from the file's example_inputs(); or write one per parameter: float32[8,3,224,224], int64[4,512]<0,50257>.
Or press i: inputs are proposed from the first layers and a trial without values; enter in a row takes them.
Plan is the run you mean to do: a gain only pays off if the plan is longer than the break-even.
Tab, up and down go from field to field, left and right choose, space takes or drops a mode.
Enter or escape leaves a text field. The line at the bottom does the same from a shell or a script."""
    DEFAULT_CSS = """
    SetupScreen { layers: base overlay; }
    SetupScreen #title { height: 1; padding: 0 2; text-style: bold; }
    SetupScreen #body { height: 1fr; }
    SetupScreen #files-panel { width: 28; max-width: 38%; }
    SetupScreen.-wide #files-panel { width: 26%; }
    SetupScreen #form-panel { width: 1fr; }
    SetupScreen #files-panel.-hidden { display: none; }
    """

    def __init__(self, target: str | None, complaint: str = "") -> None:
        super().__init__()
        self._complaint = complaint
        self._cwd = Path.cwd()
        self._given = target or ""
        self._tree: ModelTree | None = None
        self._fields: SetupFields | None = None
        self._facts: TargetFacts | None = None
        self._typing: Timer | None = None
        self._wanted: Callable[[], None] | None = None  # once the file has been read
        self._launched: LaunchedRun | None = None
        self._launched_values: FormValues | None = None
        self._polling: Timer | None = None

    @property
    def _application(self) -> TCompileApp:
        return cast("TCompileApp", self.app)

    # ------------------------------------------------------------ first the frame, then what is in it

    def compose(self) -> ComposeResult:
        yield Title(_title_text("press r to find out" if self._given else "choose a model, then press r"), id="title")
        with Horizontal(id="body"):
            yield Container(id="files-panel", classes="panel")
            yield Container(id="form-panel")
        yield CommandBar()
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(CommandBar).border_title = "The same from a shell"
        files = self.query_one("#files-panel")
        files.border_title, files.border_subtitle = "Files", "arrows, then enter"

    def on_title_drawn(self) -> None:
        self.set_timer(_WRITE_S, self._fill)

    async def _fill(self) -> None:
        from tcompile_tui.ui.setup_form import form_defaults
        from tcompile_tui.ui.widgets.model_tree import ModelTree
        from tcompile_tui.ui.widgets.setup_fields import SetupFields

        ascii_only = self._application.ascii_only
        self._tree = ModelTree(self._cwd, ascii_only)
        self._fields = SetupFields(self._cwd, self._given, ascii_only, form_defaults(self._application.config))
        self._fields.border_title = "Benchmark"
        await self.query_one("#files-panel").mount(self._tree)
        await self.query_one("#form-panel").mount(self._fields)
        (self.query_one(CommandBar) if self._given else self._tree).focus()
        threading.Thread(target=self._find_devices, daemon=True, name="devices").start()
        self._show_command()
        if self._given:
            self._look()

    def _find_devices(self) -> None:
        # On a thread that nothing waits for: a sick driver may never answer.
        from tcompile_tui.ui.widgets.setup_choices import device_options

        self.post_message(DevicesFound(device_options()))

    @on(DevicesFound)
    def _show_devices(self, message: DevicesFound) -> None:
        if self._fields is not None:
            self._fields.show_devices(message.options)
            self._show_command()

    # ------------------------------------------------------------ the target

    def on_model_tree_chosen(self, event: ModelTree.Chosen) -> None:
        from tcompile_tui.ui.model_files import shown_path

        if self._fields is not None:
            self._fields.set_target(shown_path(event.path, self._cwd))

    def on_setup_fields_target_edited(self, event: SetupFields.TargetEdited) -> None:
        if self._typing is not None:
            self._typing.stop()
        self._facts = None
        self.workers.cancel_group(self, _INSPECTION)
        self._show_command()
        if event.complete:
            self._look()
        else:
            self._typing = self.set_timer(_TYPING_PAUSE_S, self._look)

    def on_setup_fields_edited(self) -> None:
        self._show_command()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_leave_field()

    def _look(self) -> None:
        if self._fields is not None:
            self.run_worker(self._learn(self._fields, self._fields.target), group="facts", exclusive=True)

    async def _learn(self, fields: SetupFields, target: str) -> None:
        facts, remembered = await asyncio.to_thread(_facts_and_settings, target, self._cwd)
        fields.show_facts(facts, remembered)
        self._facts = facts
        if self._tree is not None:
            self._tree.mark(facts.path)
        self._show_command()
        if self._complaint:
            fields.refuse(self._complaint)
            self._say("correct what is marked with !")
            self._complaint = ""
        if self._wanted is not None:
            self._wanted()

    def _show_command(self) -> None:
        if self._fields is None:
            return
        checked = self._fields.checked
        bar = self.query_one(CommandBar)
        bar.command, bar.can_run = checked.command, checked.can_run
        if self._launched is None:
            self._say(checked.next_step)

    def _say(self, text: str) -> None:
        self.query_one(Title).update(_title_text(text))

    def _ready_for(self, action: Callable[[], None]) -> SetupFields | None:
        """The form; None if the file has yet to be read, after which `action` is called again."""
        fields = self._fields
        is_ready = fields is not None and (self._facts is not None or fields.target == "")
        self._wanted = None if is_ready else action
        return fields if is_ready else None

    # ------------------------------------------------------------ its inputs

    def action_inspect(self) -> None:
        """Once more stops it."""
        fields = self._ready_for(self.action_inspect)
        if fields is None:
            return
        if any(worker.group == _INSPECTION and not worker.is_finished for worker in self.workers):
            self.workers.cancel_group(self, _INSPECTION)
        elif self._facts is None or self._facts.problem is not None or self._facts.chosen is None:
            fields.complain(insist=True)
        else:
            self.run_worker(self._inspect(fields), group=_INSPECTION, exclusive=True)

    async def _inspect(self, fields: SetupFields) -> None:
        """Ends with the screen, or when another target is written."""
        from tcompile_tui.ui import inspecting

        fields.inspecting("trying the model ... (i stops it)")
        try:
            spec = fields.checked.spec
            arguments = [str(argument) for argument in spec.arguments] if spec is not None else []
            document = await inspecting.inspect(fields.target, self._cwd, arguments)
        except inspecting.InspectError as error:
            fields.inspecting_failed(str(error))
            return
        except asyncio.CancelledError:
            fields.inspecting("")
            raise
        proposed = fields.show_answer(document)
        if proposed is not None and not isinstance(self.focused, Input):
            proposed.focus()
        self._show_command()

    # ------------------------------------------------------------ the run

    def action_run(self) -> None:
        if self._launched is not None:
            return
        fields = self._ready_for(self.action_run)
        if fields is None:
            return
        checked = fields.checked
        if checked.spec is None or not checked.can_run:
            fields.complain(insist=True)
            return
        from tcompile_tui.ui.launch import launch

        try:
            self._launched = launch(checked.arguments, self._application.runs_dir, checked.spec.target.label, self._cwd)
        except OSError as error:
            fields.refuse(f"cannot start the run: {error}")
            return
        self._say("starting ...")
        self._launched_values = fields.values
        self._polling = self.set_interval(_POLL_S, self._poll)

    def _poll(self) -> None:
        """Follow the run once it has a folder, or say why it has none."""
        launched = self._launched
        if launched is None or self.app.screen is not self:
            return
        refusal = launched.refusal()
        if refusal is None and not launched.has_folder:
            return
        if self._polling is not None:
            self._polling.stop()
        self._launched = None
        if refusal is None:
            self._remember()
            self._application.follow(launched.folder.path)
        elif self._fields is not None:
            self._say("it did not start")
            self._fields.refuse(refusal)

    def _remember(self) -> None:
        path, values = self._facts.path if self._facts else None, self._launched_values
        if path is not None and values is not None:
            from tcompile_tui.ui.remembered import remember

            self.run_worker(asyncio.to_thread(remember, path, values), group="remember", exit_on_error=False)

    # ------------------------------------------------------------ keys

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.query_one(CommandBar).command)
        self.notify("Copied the command, if your terminal allows it (OSC 52).", timeout=3)

    def action_history(self) -> None:
        self._application.show_runs()

    def action_caches(self) -> None:
        self._application.show_caches()

    def action_toggle_files(self) -> None:
        panel = self.query_one("#files-panel")
        panel.toggle_class("-hidden")
        if panel.has_class("-hidden"):
            self.action_leave_field()
        elif self._tree is not None:
            self._tree.focus()

    def action_focus_target(self) -> None:
        with suppress(LookupError):
            self.query_one("#target-line").focus()

    def action_leave_field(self) -> None:
        self.query_one(CommandBar).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While text is written, the footer says how to end it."""
        writes = isinstance(self.focused, Input)
        return writes if action == "leave_field" else not (writes and action == "focus_target")

    def on_descendant_focus(self) -> None:
        self.refresh_bindings()


def _title_text(text: str) -> Content:
    return Content.assemble(_TITLE, "  ", (text, "not bold dim"))


def _facts_and_settings(target: str, cwd: Path) -> tuple[TargetFacts, FormValues | None]:
    """Reads the disk: in a thread."""
    from tcompile_tui.ui.remembered import recall
    from tcompile_tui.ui.target_facts import look_at

    facts = look_at(target, cwd)
    return facts, recall(facts.path) if facts.path is not None else None

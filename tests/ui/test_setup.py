"""The Setup screen, by keys, with a run that is not really started."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from tcompile_tui.host.gpu import GpuInfo
from tcompile_tui.host.run_folder import RunFolder
from tcompile_tui.ui import app as app_module, launch
from tcompile_tui.ui.app import TCompileApp
from tcompile_tui.ui.remembered import remember
from tcompile_tui.ui.screens.setup import DevicesFound, SetupScreen
from tcompile_tui.ui.setup_form import FormValues
from tcompile_tui.ui.widgets import setup_choices
from tcompile_tui.ui.widgets.choices import Choices, Option
from tcompile_tui.ui.widgets.command_bar import CommandBar
from tcompile_tui.ui.widgets.field import Field
from tcompile_tui.ui.widgets.model_tree import ModelTree
from tcompile_tui.ui.widgets.setup_choices import DEVICES
from tests.ui.screen_app import screen_text

SEVERAL = """
from torch import nn

class Encoder(nn.Module):
    def forward(self, ids, mask=None): ...

class Decoder(nn.Module):
    def __init__(self, width: int = 8): ...
    def forward(self, x): ...
"""


class FakeRun:
    """Stands for the process: the test says what becomes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self.has_folder = False
        self.reason: str | None = None

    def refusal(self) -> str | None:
        return self.reason


class FakeLaunch:
    def __init__(self) -> None:
        self.calls: list[tuple[list[str], Path, str, Path]] = []
        self.runs: list[FakeRun] = []

    def __call__(self, arguments: Sequence[str], runs_dir: Path, label: str, cwd: Path) -> FakeRun:
        self.calls.append((list(arguments), runs_dir, label, cwd))
        self.runs.append(FakeRun(runs_dir / f"run{len(self.runs)}"))
        return self.runs[-1]

    @property
    def arguments(self) -> list[str]:
        assert len(self.calls) == 1, self.calls
        return self.calls[0][0]


class SetupApp(TCompileApp):
    """Notes where it would go next."""

    CSS_PATH = str(Path(app_module.__file__).with_name("app.tcss"))
    followed: Path | None = None

    def follow(self, path: Path) -> None:
        self.followed = path


@pytest.fixture(autouse=True)
def project(tmp_path: Path, sample_models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    shutil.copytree(sample_models, root / "sample_models", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tests").mkdir()
    (root / "tests" / "test_it.py").touch()
    (root / "several.py").write_text(SEVERAL)
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return root


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> FakeLaunch:
    fake = FakeLaunch()
    monkeypatch.setattr(launch, "launch", fake)
    return fake


@asynccontextmanager
async def opened(
    target: str | None = None, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[SetupApp, Pilot[None]]]:
    app = SetupApp(Path("runs").absolute(), target=target, **options)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(400):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come to that")


async def ready(pilot: Pilot[None]) -> SetupScreen:
    """The form is there, and the file has been read if there is one."""
    screen = pilot.app.screen
    assert isinstance(screen, SetupScreen)
    await until(pilot, lambda: screen.query("#target-line"))
    line = screen.query_one("#target-line", Input)
    await until(pilot, lambda: not line.value or screen.query_one("#models").has_class("-shown") or reasons(screen))
    return screen


def reasons(screen: SetupScreen) -> dict[str, str]:
    """What is shown below the fields."""
    wrong = (field for field in screen.query(Field) if field.has_class("-wrong"))
    return {field.key: str(field.query_one(".reason").render()) for field in wrong}


def command(app: App[None]) -> str:
    return app.screen.query_one(CommandBar).command


def title(app: App[None]) -> str:
    return str(app.screen.query_one("#title").render())


# ---------------------------------------------------------------- to a running benchmark


async def test_one_key_runs_a_given_file(launched: FakeLaunch, project: Path) -> None:
    async with opened("sample_models/convnet.py") as (app, pilot):
        await pilot.press("r")  # at once, before the file has been read
        await until(pilot, lambda: launched.calls)
        assert launched.calls == [(["sample_models/convnet.py"], project / "runs", "convnet", project)]
        await pilot.press("r")
        await pilot.pause(0.1)
        assert len(launched.calls) == 1
        assert app.followed is None
        launched.runs[0].has_folder = True
        await until(pilot, lambda: app.followed)
        assert app.followed == project / "runs" / "run0"


async def test_six_keys_run_a_file_that_was_looked_for(launched: FakeLaunch) -> None:
    async with opened() as (app, pilot):
        await ready(pilot)
        assert "Does torch.compile pay off?" in title(app)
        assert "choose a model" in title(app)
        tree = app.screen.query_one("#files", ModelTree)
        await until(pilot, lambda: tree.last_line == 2)
        await pilot.press("enter")  # opens sample_models
        await until(pilot, lambda: tree.last_line > 3)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "press r" in title(app) and "choose" not in title(app))
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == ["sample_models/convnet.py"]


async def test_a_refusal_is_shown_at_the_path_and_the_form_stays(launched: FakeLaunch) -> None:
    async with opened("sample_models/mlp.py") as (app, pilot):
        screen = await ready(pilot)
        await pilot.press("r")
        await until(pilot, lambda: launched.runs)
        launched.runs[0].reason = "torch is not [bold]there[/]: use --python"
        await until(pilot, lambda: reasons(screen))
        assert reasons(screen) == {"target": "! torch is not [bold]there[/]: use --python"}
        assert app.screen is screen and app.followed is None
        await pilot.press("r")
        await until(pilot, lambda: len(launched.calls) == 2)


async def test_a_run_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no processes left")

    monkeypatch.setattr(launch, "launch", fail)
    async with opened("sample_models/mlp.py") as (_, pilot):
        screen = await ready(pilot)
        await pilot.press("r")
        await until(pilot, lambda: reasons(screen))
        assert "no processes left" in reasons(screen)["target"]


async def test_it_waits_for_the_form_to_be_on_top(launched: FakeLaunch) -> None:
    async with opened("sample_models/mlp.py") as (app, pilot):
        await ready(pilot)
        await pilot.press("r")
        await until(pilot, lambda: launched.runs)
        await app.push_screen(Screen[None]())
        launched.runs[0].has_folder = True
        await pilot.pause(0.2)
        assert app.followed is None
        app.pop_screen()
        await until(pilot, lambda: app.followed)


# ---------------------------------------------------------------- fields


async def test_bad_input_is_marked_while_typing_and_letters_are_text(launched: FakeLaunch) -> None:
    async with opened("sample_models/convnet.py") as (app, pilot):
        screen = await ready(pilot)
        await until(pilot, lambda: screen.query("InputRows Input"))
        line = screen.query_one("InputRows Input", Input)
        assert line.placeholder == "e.g. float32[8,3,224,224]"
        line.focus()
        await pilot.press(*"fry")
        await until(pilot, lambda: reasons(screen))
        assert (line.value, launched.calls, app.clipboard) == ("fry", [], "")
        assert reasons(screen) == {"input images": "! write it as float32[8,3,224,224]"}
        assert line.has_class("-invalid")
        assert "marked with !" in title(app)
        line.value = "f32[2,3,64,64]"
        await until(pilot, lambda: not reasons(screen))
        await until(pilot, lambda: command(app).endswith("convnet.py --input 'images=float32[2,3,64,64]'"))
        await pilot.press("enter", "r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == ["sample_models/convnet.py", "--input", "images=float32[2,3,64,64]"]


async def test_missing_inputs_are_asked_for_when_it_is_to_run(launched: FakeLaunch) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        screen = await ready(pilot)
        assert [field.key for field in screen.query(Field) if field.display] == [
            "target",
            "input ids",
            "input mask",
            "batch",
            "plan",
            "step",
        ]
        assert reasons(screen) == {} and "fill in the inputs" in title(app)
        await pilot.press("r")
        await until(pilot, lambda: reasons(screen))
        assert reasons(screen) == {"input ids": "! needed, for example int64[8,128]<0,1000>"}
        assert launched.calls == []
        await pilot.press(*"i64[2]", "escape", "r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == ["several.py:Encoder", "--input", "ids=int64[2]"]


async def test_several_models_are_listed_and_one_is_chosen(launched: FakeLaunch) -> None:
    async with opened("several.py", size=(120, 36)) as (app, pilot):
        screen = await ready(pilot)
        assert reasons(screen) == {"target": "! several.py has several models: choose one"}

        def listed() -> str:
            return str(screen.query_one("#models", Choices).render())

        await until(pilot, lambda: "○ Encoder()" in listed())  # its first frame may come before its width is known
        shown = listed()
        assert "nn.Module, line 4" in shown
        assert "○ Decoder(width: int = 8)" in shown and "nn.Module, line 7" in shown
        await pilot.press("r")
        assert launched.calls == []
        screen.query_one("#models").focus()
        await pilot.press("down")
        await until(pilot, lambda: "several.py:Decoder" in command(app) and "target" not in reasons(screen))
        expected = ["target", "arguments", "input x", "batch", "plan", "step"]
        await until(pilot, lambda: [f.key for f in screen.query(Field) if f.display] == expected)


async def test_a_path_is_completed_by_tab_and_taken_by_enter(launched: FakeLaunch) -> None:
    async with opened() as (app, pilot):
        screen = await ready(pilot)
        await pilot.press("slash")
        line = screen.query_one("#target-line", Input)
        assert screen.focused is line
        for started, completed in (("sa", "sample_models/"), ("ml", "sample_models/mlp.py")):
            await pilot.press(*started)
            await pilot.pause(0.2)
            await pilot.press("tab")
            await until(pilot, lambda: line.value == completed)  # noqa: B023
        await pilot.press("enter")
        await until(pilot, lambda: "press r to find out" in title(app))
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        assert launched.arguments == ["sample_models/mlp.py"]


async def test_a_wrong_path_is_marked_after_a_pause() -> None:
    async with opened() as (_, pilot):
        screen = await ready(pilot)
        await pilot.press("slash", *"nothing.py")
        await until(pilot, lambda: reasons(screen))
        assert reasons(screen)["target"].startswith("! there is no file nothing.py")


async def test_choices_by_keys_make_the_command(launched: FakeLaunch) -> None:
    async with opened("sample_models/mlp.py") as (app, pilot):
        screen = await ready(pilot)
        keys = {
            "task": ["right"],
            "modes": ["down", "space", "up", "space"],
            "device": ["right"],
            "dtype": ["right", "right"],
            "amp": ["right"],
            "unit": ["right"],
            "preset": ["left"],
        }
        for name, pressed in keys.items():
            screen.query_one(f"#{name}").focus()
            await pilot.press(*pressed)
        screen.query_one("#plan-line").focus()
        await pilot.press(*"5000", "escape")
        assert command(app) == (
            "tcompile-tui run sample_models/mlp.py --task train --mode reduce-overhead --device cpu "
            "--dtype bfloat16 --amp bf16 --planned-steps 5000 --preset quick"
        )
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        assert " ".join(launched.arguments) == command(app).removeprefix("tcompile-tui run ")


async def test_without_a_mode_it_does_not_run(launched: FakeLaunch) -> None:
    async with opened("sample_models/mlp.py") as (_, pilot):
        screen = await ready(pilot)
        modes = screen.query_one("#modes", Choices)
        modes.focus()
        await pilot.press("space", "r")
        assert "! choose at least one mode" in str(modes.render())
        assert launched.calls == []


async def test_the_file_says_whether_it_trains(project: Path, launched: FakeLaunch) -> None:
    (project / "trains.py").write_text(SEVERAL.replace("class Encoder", "TRAIN = True\nclass Encoder"))
    async with opened("trains.py:Decoder") as (app, pilot):
        screen = await ready(pilot)
        task = screen.query_one("#task", Choices)
        await until(pilot, lambda: task.value == "train")
        assert "--task" not in command(app)
        task.focus()
        await pilot.press("left")
        assert "--task infer" in command(app)


async def test_gpus_are_offered_by_the_numbers_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def __enter__(self) -> Driver:
            return self

        def __exit__(self, *_: object) -> None: ...

        def list_gpus(self) -> tuple[GpuInfo, ...]:
            return tuple(GpuInfo(i, f"GPU-{i}", "NVIDIA H200", 150_754_820_096, 0, 3.0) for i in range(3))

    monkeypatch.setattr(setup_choices, "Gpus", Driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    async with opened("sample_models/mlp.py") as (app, pilot):
        screen = await ready(pilot)
        device = screen.query_one("#device", Choices)
        await until(pilot, lambda: len(device.options) == 4)
        assert [option.value for option in device.options] == ["auto", "cpu", "cuda:0", "cuda:1"]
        assert device.options[2].detail == "H200, 140 GiB, 3.0 % busy"
        device.focus()
        await pilot.press("right", "right", "right")
        assert command(app).endswith("--device cuda:1")


async def test_a_remembered_gpu_waits_for_the_driver_and_is_dropped_if_it_is_gone(project: Path) -> None:
    file = project / "sample_models" / "mlp.py"
    remember(file, FormValues("sample_models/mlp.py", device="cuda:0"))
    async with opened("sample_models/mlp.py") as (app, pilot):
        screen = await ready(pilot)
        assert "--device" not in command(app)
        for options, ending in (((*DEVICES, Option("cuda:0", "cuda:0")), "--device cuda:0"), (DEVICES, "mlp.py")):
            screen.post_message(DevicesFound(options))
            await until(pilot, lambda: command(app).endswith(ending))  # noqa: B023


# ---------------------------------------------------------------- keys and looks


async def test_y_copies_the_whole_command() -> None:
    async with opened("sample_models/mlp.py") as (app, pilot):
        await ready(pilot)
        await pilot.press("y")
        assert app.clipboard == "tcompile-tui run sample_models/mlp.py"


async def test_files_can_be_put_away() -> None:
    async with opened() as (_, pilot):
        screen = await ready(pilot)
        form = screen.query_one("#form")
        narrow = form.size.width
        await pilot.press("f")
        await pilot.pause()
        assert not screen.query_one("#files-panel").display and form.size.width > narrow
        await pilot.press("f")
        await pilot.pause()
        assert screen.focused is screen.query_one("#files")


async def test_up_and_down_go_from_field_to_field() -> None:
    async with opened("sample_models/mlp.py") as (_, pilot):
        screen = await ready(pilot)
        screen.query_one("#device").focus()
        await pilot.press("down")
        assert screen.focused is screen.query_one("#dtype")
        await pilot.press("up", "up")
        assert screen.focused is screen.query_one("#preset")
        screen.query_one("#plan-line").focus()
        await pilot.press("up")
        assert screen.focused is screen.query_one("#modes")


async def test_a_click_chooses() -> None:
    async with opened("sample_models/mlp.py") as (_, pilot):
        screen = await ready(pilot)
        task = screen.query_one("#task", Choices)
        column = str(task.render()).index("train")
        await pilot.pause(0.1)  # the rows above it are being laid out
        await pilot.click("#task", offset=(column, 0))
        await until(pilot, lambda: task.value == "train")


async def test_the_last_settings_of_a_file_come_back(launched: FakeLaunch) -> None:
    async with opened("sample_models/mlp.py") as (app, pilot):
        screen = await ready(pilot)
        screen.query_one("#preset").focus()
        await pilot.press("right")
        screen.query_one("InputRows Input", Input).value = "f32[4,512]"
        await pilot.press("r")
        await until(pilot, lambda: launched.calls)
        last = command(app)
        launched.runs[0].has_folder = True
        await until(pilot, lambda: app.followed)
        await app.workers.wait_for_complete()
    async with opened("sample_models/convnet.py") as (app, pilot):
        screen = await ready(pilot)
        assert command(app) == "tcompile-tui run sample_models/convnet.py"
        await pilot.press("slash")
        screen.query_one("#target-line", Input).value = "sample_models/mlp.py"
        await pilot.press("enter")
        await until(pilot, lambda: command(app) == last)
    assert "thorough" in last and "features=float32[4,512]" in last


async def test_user_text_is_literal(project: Path) -> None:
    (project / "[red]x.py").write_text("from torch import nn\nclass N(nn.Module):\n    def forward(self, x): ...\n")
    async with opened("[red]x.py") as (app, pilot):
        await ready(pilot)
        assert command(app) == "tcompile-tui run '[red]x.py'"
        assert "'[red]x.py'" in str(app.screen.query_one(CommandBar).render())


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (40, 12), (80, 24), (120, 36), (250, 80)])
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_every_size_is_drawn(size: tuple[int, int], ascii_only: bool) -> None:
    async with opened("sample_models/convnet.py", size=size, ascii_only=ascii_only) as (app, pilot):
        await ready(pilot)
        await pilot.press("tab", "down", "right")
        picture = app.export_screenshot()
        if size >= (80, 24):
            assert "convnet.py" in picture and "ResNet18" in picture
            assert ("●" in picture) is not ascii_only


async def test_without_colour_the_current_option_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened("sample_models/convnet.py") as (_, pilot):
        screen = await ready(pilot)
        modes = screen.query_one("#modes", Choices)
        modes.focus()
        await pilot.pause()
        strip = modes.render_line(0)
        assert any(segment.style and segment.style.reverse for segment in strip)


async def test_a_folder_without_python_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    async with opened() as (app, pilot):
        await ready(pilot)
        await until(pilot, lambda: "no Python files here" in screen_text(app))
        await pilot.press("down", "enter")
        await pilot.pause()
        assert app.screen.query_one("#target-line", Input).value == ""


async def test_an_input_that_may_be_left_out_says_so_at_80_columns(project: Path) -> None:
    async with opened("several.py:Encoder") as (app, pilot):
        await ready(pilot)
        await until(pilot, lambda: "optional: int64" in screen_text(app))

"""The command line. Heavy imports wait until a command needs them, so that --help is quick."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import tcompile_tui
from tcompile_tui.cli_arms import arm_options, read_modes
from tcompile_tui.cli_caches import MODES, caches
from tcompile_tui.cli_data import data_options, with_data
from tcompile_tui.cli_doctor import doctor
from tcompile_tui.cli_gate import gate_of, gate_options, tell_gate, write_junit
from tcompile_tui.cli_inspect import inspect
from tcompile_tui.cli_live import LiveFiles, live_options
from tcompile_tui.cli_recorded import compare, decide, report
from tcompile_tui.cli_shapes import shape_options, with_shapes
from tcompile_tui.cli_shared import assignments, fail, recorded_run

if TYPE_CHECKING:
    from tcompile_tui.core.spec import RunSpec
    from tcompile_tui.core.step_spec import StepSpec
    from tcompile_tui.host.run_request import RunRequest
    from tcompile_tui.host.supervisor import Finished

PRESETS = ("smoke", "quick", "standard", "thorough")


class _OpenApp(click.Group):
    """A first word that is no command is a TARGET for the application."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (not args[0].startswith("-") and args[0] not in self.commands):
            args = ["app", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_OpenApp, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tcompile_tui.__version__, prog_name="tcompile-tui")
def main() -> None:
    """Does torch.compile pay off for your model, here, for the run you plan?

    `tcompile-tui [TARGET]` opens the application; TARGET is path/file.py, path/file.py:Name or
    package.module:Name.
    """
    from tcompile_tui.config import load_config

    for problem in load_config().problems:
        click.echo(f"warning: {problem}", err=True)


@main.command(hidden=True)
@click.argument("target", required=False)
def app(target: str | None) -> None:
    """Open the application."""
    from tcompile_tui.ui.start import open_app

    open_app(target)


@main.command()
@click.argument("run_folder", metavar="RUN")
@click.option(
    "--speed", type=click.FloatRange(min=0.1), default=4.0, show_default=True, help="Times as fast as it was."
)
def replay(run_folder: str, speed: float) -> None:
    """Watch a recorded run again. RUN is a run folder, or its name as `tcompile-tui runs` lists it."""
    from tcompile_tui.ui.feeds import ReplayFeed
    from tcompile_tui.ui.start import open_app

    open_app(feed=ReplayFeed(recorded_run(run_folder), speed=speed))


@main.command(short_help="Watch a real run that was recorded on an H200.")
@click.option(
    "--speed", type=click.FloatRange(min=0.1), default=4.0, show_default=True, help="Times as fast as it was."
)
def demo(speed: float) -> None:
    """Watch a real run that was recorded on an H200; needs neither GPU nor torch."""
    from tcompile_tui.ui.demo import unpacked_demo
    from tcompile_tui.ui.feeds import ReplayFeed
    from tcompile_tui.ui.start import open_app

    with unpacked_demo() as path:
        open_app(feed=ReplayFeed(path, speed=speed))


def _run_options(function: Any) -> Any:
    """What to measure and how; shared by every command that starts a run."""
    options = [
        click.option("--input", "inputs", multiple=True, metavar="SPEC", help="name=float32[4,3,224,224] or ids=int64[4,512]<0,50257>, or any value, (float32[2], 0.5); repeat it for several. Default: the file's example_inputs()."),
        click.option("--inputs", "inputs_from", metavar="FILE", help="Or a saved batch (batch.pt, tensors only), or a function that makes one: file.py:make_batch."),
        click.option("--dim", "dims", multiple=True, metavar="B=8", help="Size of a named dimension (several, B=8,16,32, are replayed as with --shapes): of --input 'float32[B,128]', or of the inputs that timm:, torchvision: and transformers: models bring (B, T, H, W)."),
        click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="Argument of the model's constructor: a literal, a word, JSON, or @file.json; config.hidden=8 sets one field."),
        click.option("--task", type=click.Choice(["infer", "train", "decode", "serve"]), help="One step is a forward pass, a training step with AdamW, or, with decode, a generation of a causal language model: the prompt, then --new-tokens one by one with a cache of keys and values; serve: a request that is waited for. Default: as the file says (TRAIN = True), else infer."),
        click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), help="Mode of torch.compile; several are compared. Default: default."),
        click.option("--device", default="auto", metavar="cpu|cuda|cuda:N", help="Default: the least busy GPU, else the CPU."),
        click.option("--dtype", metavar="D", help="Convert the model and its floating inputs: float32, bfloat16, float16, float64."),
        click.option("--amp", type=click.Choice(["bf16", "fp16"]), help="Run the steps under autocast."),
        click.option("--loss", metavar="FILE.py:FN", help="Loss of a training step, called with the model's output. Default: the file's loss(output), else the mean square."),
        click.option("--optimizer", metavar="sgd|adamw|FILE.py:FN", help="Of a training step; FN(model) returns one. Its learning rate is set to 0, so that no weight moves. Default: adamw."),
        click.option("--compile-optimizer", is_flag=True, help="Compile optimizer.step too, in the compiled arm."),
        click.option("--grad-clip", metavar="NORM", help="Clip the gradients of a training step to this norm."),
        click.option("--accumulate", metavar="N", help="Micro-batches of one training step: N times forward and backward, then the optimizer. Default: 1."),
        click.option("--channels-last", is_flag=True, help="Model and image inputs in channels_last memory format."),
        click.option("--tf32", is_flag=True, help="Allow TF32 in float32 matrix products, in both arms."),
        click.option("--epoch", metavar="[train=K,]last=N,eval=M|none", help="Run the end of an epoch before the comparison: a last batch of N samples, M evaluations, then training again, since a new shape may make every later step dynamic. With its K full batches a start is counted in epochs too. Default for training, from preset standard on: half a batch and an evaluation; none: full batches only."),
        click.option("--step", metavar="FILE.py:FN", help="A whole step of your own, FN(model, batch) or FN(model, batch, optimizer); the compiled arm gets the compiled model."),
        click.option("--planned-steps", type=click.IntRange(min=1), help="Steps of the run you plan."),
        click.option("--planned-hours", type=click.FloatRange(min=0, min_open=True), help="Or its length in hours of eager steps. Default: 24."),
        click.option("--starts", metavar="cold=N,warm=M", help="How often that run is started, with empty compile caches and with those of an earlier start. Default: cold=1."),
        click.option("--preset", type=click.Choice(PRESETS), default="standard", show_default=True, help="How much time to take: quick 5 min at most, standard 15, thorough 60."),
        click.option("--budget", type=click.FloatRange(min=5), metavar="SECONDS", help="Time limit for the whole run."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@main.command()
@click.argument("target")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@_run_options
@arm_options
@shape_options
@data_options
@click.option(
    "--python",
    metavar="EXE",
    help="Interpreter that has torch and the model's packages. Nothing is installed there.",
)
@click.option("--env", "environment", multiple=True, metavar="K=V", help="Set an environment variable for the model.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder that the model runs in.",
)
@click.option("--runs-dir", type=click.Path(file_okay=False, path_type=Path), help="Where run folders go.")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    hidden=True,
    help="The run folder itself; for programs that follow it.",
)
@click.option("--name", help="Name for the run folder. Default: the model's.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the verdict as JSON to a file, or to stdout.")
@live_options
@gate_options
@click.option("--keep-caches", is_flag=True, help="Keep the compile caches of this run.")
@click.option(
    "--cold-headers",
    is_flag=True,
    help="Count the C++ headers, precompiled once per machine, as part of a cold start (CPU).",
)
@click.option("--fresh", is_flag=True, help="Start every process in a fresh interpreter; slower, for comparison.")
@click.option("--explain", is_flag=True, help="Also ask torch._dynamo.explain, in a process of its own.")
@click.option(
    "--keep-trace",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep torch's raw compile trace, for tlparse. Writing it slows compiling a little.",
)
def run(target: str, argv: tuple[str, ...], **options: Any) -> None:
    """Measure TARGET and say whether torch.compile pays off.

    TARGET is path/file.py, path/file.py:Name or package.module:Name; Name is an nn.Module class or a function that
    returns a module. Or an architecture with random weights: timm:resnet50, torchvision:vit_b_16, transformers:gpt2. Arguments after -- are the model script's own.

    Exit status: 0 a decision was reached, 2 bad input, 3 the model fails in eager, 4 torch.compile cannot run
    here, 5 stopped before a decision, 6 the run failed, 10 a decision was reached, but the gate does not hold.
    """
    from tcompile_tui.config import load_config
    from tcompile_tui.core.spec import SpecError
    from tcompile_tui.host.interpreter import InterpreterError
    from tcompile_tui.host.run_request import prepare

    config = load_config()
    from_config = not options["python"] and config.python is not None
    options["python"] = options["python"] or config.python
    try:
        request = _request(target, argv, options)
        prepared = prepare(request)
    except SpecError as error:
        fail(str(error), 2)
    except InterpreterError as error:
        fail(config.complaint("python", str(error)) if from_config else str(error), 2 if options["python"] else 4)
    live = LiveFiles(options["metrics_textfile"], options["csv_path"])
    _execute(prepared, options["json_path"], options["junit_path"], live)


def _execute(prepared: Any, json_path: str | None, junit_path: Path | None, live: LiveFiles) -> None:
    from tcompile_tui.host.stopping import StopRequest
    from tcompile_tui.host.supervisor import execute
    from tcompile_tui.report.progress import ProgressLine

    stop = StopRequest()
    progress = ProgressLine(sys.stderr)

    def on_change(state: Any) -> None:
        progress.silent = progress.silent or stop.terminal_gone
        progress.update(state)
        live.update(state)

    with stop.listening():
        try:
            finished = execute(prepared, stop, on_change)
        except OSError as error:
            fail(f"cannot write the run: {error}; choose another folder with --runs-dir", 6)
        progress.close()
        live.finish(finished, silent=progress.silent)
        _report(finished, json_path, silent=progress.silent)
        if junit_path is not None:
            name, seconds = finished.folder.path.name, finished.state.now_s
            write_junit(junit_path, name, finished.verdict, finished.checks, seconds)
    # Daemon threads that still wait in a read of the driver must not hold the exit.
    sys.stdout.flush() if not progress.silent else None
    os._exit(int(finished.exit_code))


def _report(finished: Finished, json_path: str | None, silent: bool) -> None:
    """The verdict for people and, where asked, for programs; a terminal that went away is no error."""
    from tcompile_tui.core.literal import one_line
    from tcompile_tui.core.verdict_json import encode_verdict, verdict_document
    from tcompile_tui.report.text import verdict_text

    document = encode_verdict(verdict_document(finished.state, finished.verdict, finished.checks))
    text = verdict_text(finished.state, finished.verdict, finished.folder.path)
    try:
        if json_path == "-":
            click.echo(document, nl=False)
        elif json_path is not None:
            Path(json_path).write_bytes(document)
        if not silent and finished.verdict.is_answer:
            click.echo(text, err=json_path == "-", nl=False)
        elif not silent:
            click.echo(f"error: {one_line(finished.verdict.headline)}", err=True)
        if not silent:
            tell_gate(finished.checks)
        if finished.unwritten is not None and not silent:
            click.echo(f"warning: {one_line(finished.unwritten)}", err=True)
    except OSError as error:
        if json_path not in (None, "-"):
            click.echo(f"error: cannot write {json_path}: {error}", err=True)


def _request(target: str, argv: tuple[str, ...], options: dict[str, Any]) -> RunRequest:
    """Raises SpecError."""
    from tcompile_tui.host.run_request import RunRequest
    from tcompile_tui.paths import default_runs_dir

    cwd = Path(options["cwd"]).absolute()
    return RunRequest(
        spec=_spec(target, options),
        cwd=cwd,
        runs_dir=(options["runs_dir"] or default_runs_dir()).absolute(),
        command=shlex.join(["tcompile-tui", *sys.argv[1:]]),
        python=options["python"],
        name=options["name"],
        folder=options["into"],
        argv=argv,
        extra_environment=assignments(options["environment"]),
        keep_caches=options["keep_caches"],
        cold_headers=options["cold_headers"],
        fresh=options["fresh"],
        explain=options["explain"],
        fullgraph=options["fullgraph"],
        keep_trace=options["keep_trace"].absolute() if options["keep_trace"] is not None else None,
        gate=gate_of(options),
    )


def _spec(target: str, options: dict[str, Any]) -> RunSpec:
    from tcompile_tui.core.spec import (
        ONE_COLD_START,
        USUAL_NEW_TOKENS,
        Plan,
        Preset,
        RunSpec,
        SpecError,
        Task,
        check_inputs,
        parse_arguments,
        parse_device,
        parse_dtype,
        parse_inputs,
        parse_starts,
        parse_target,
    )  # fmt: skip
    from tcompile_tui.core.step_spec import check_step
    from tcompile_tui.core.task_spec import with_task

    if options["planned_steps"] is not None and options["planned_hours"] is not None:
        raise SpecError("give --planned-steps or --planned-hours, not both")
    preset = Preset(options["preset"])
    task = Task(options["task"]) if options["task"] else None
    spec = RunSpec(
        target=parse_target(target),
        inputs=parse_inputs(options["inputs"]),
        task=task,
        modes=read_modes(options["modes"], options["arms"]),
        device=parse_device(options["device"]),
        dtype=parse_dtype(options["dtype"]) if options["dtype"] else None,
        amp=options["amp"],
        plan=Plan(
            options["planned_steps"],
            options["planned_hours"],
            parse_starts(options["starts"]) if options["starts"] else ONE_COLD_START,
        ),
        preset=preset,
        budget_s=options["budget"] or preset.budget_s,
        inputs_from=options["inputs_from"],
        slo_ms=options["slo_ms"],
        new_tokens=options["new_tokens"] or USUAL_NEW_TOKENS,
        arguments=parse_arguments(options["arguments"]),
        step=check_step(_step(options), infers=task not in (None, Task.TRAIN), amp=options["amp"]),
    )
    spec = with_task(with_data(with_shapes(spec, options), options))
    check_inputs(spec)
    return spec


def _step(options: dict[str, Any]) -> StepSpec:
    """Raises SpecError."""
    from tcompile_tui.core.step_spec import parse_step

    valued = ("loss", "optimizer", "grad_clip", "accumulate", "epoch", "step")
    flags = ("compile_optimizer", "channels_last", "tf32")
    words = [f"--{name.replace('_', '-')}={options[name]}" for name in valued if options[name] is not None]
    return parse_step([*words, *(f"--{name.replace('_', '-')}" for name in flags if options[name])])


@main.command()
@click.option("--runs-dir", type=click.Path(file_okay=False, path_type=Path), help="Where run folders are.")
@click.option("--prune", is_flag=True, help="Delete ended runs that are older than --days.")
@click.option("--days", type=click.FloatRange(min=0), default=30, show_default=True, help="Age for --prune.")
def runs(runs_dir: Path | None, prune: bool, days: float) -> None:
    """List the recorded runs, newest first."""
    from tcompile_tui.core.literal import literal
    from tcompile_tui.host.run_folder import list_runs, prune_runs
    from tcompile_tui.paths import default_runs_dir

    folder = runs_dir or default_runs_dir()
    if prune:
        names = [gone.name for gone in prune_runs(folder, timedelta(days=days))]
        click.echo("\n".join([*(f"deleted {name}" for name in names), f"{len(names)} deleted from {folder}"]))
        return
    found = list_runs(folder)
    for summary in found:
        cells = (summary.name, f"{summary.status.value:<9}", f"{summary.decision or '':<19}", summary.info.spec.target)
        click.echo("  ".join(literal(str(cell).replace("\n", " ")) for cell in cells))
    if not found:
        click.echo(f"no runs in {folder}")


@main.command()
def config() -> None:
    """Show the defaults that config.toml sets, and where it lies."""
    from tcompile_tui.config import KEYS, load_config

    found = load_config()
    click.echo(f"{found.path}" + ("" if found.path.exists() else " (there is none)"))
    for key in KEYS:
        click.echo(f"  {key:<14}{_setting_text(getattr(found, key))}")
    raise SystemExit(2 if found.problems else 0)


def _setting_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_setting_text, value))
    return "not set" if value is None else str(getattr(value, "value", value))


main.add_command(decide)
main.add_command(compare)
main.add_command(report)
main.add_command(caches)
main.add_command(doctor)
main.add_command(inspect)

"""Tiny programs that make the compiler tell something, and what it told: standard library and torch only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from tcompile_tui.core import events as ev
from tcompile_tui.core.events import CompileStage, Event
from tcompile_tui.worker import compiler
from tcompile_tui.worker.failures import describe_failure

Program = Callable[[], Any]
ROOT_VARIABLE = "TCOMPILE_TUI_CONTRACT_ROOT"
_FILE = str(Path(__file__).resolve())
_LINES = Path(__file__).read_text(encoding="utf-8").splitlines()
_AnyEvent = TypeVar("_AnyEvent", bound=Event)
_heard: list[Event] = []
listener = compiler.CompileSignals(_heard.append)


def place_of(comment: str) -> tuple[str, int]:
    """File and line of the line that ends in this comment."""
    return _FILE, 1 + next(i for i, line in enumerate(_LINES) if line.endswith(f"# {comment}"))


@dataclass(frozen=True)
class Told:
    """What one program made the compiler tell. `activity` counts what `take_activity_ns` gave, `answer` is the
    program's own result."""

    events: tuple[Event, ...]
    activity: int
    answer: Any = None

    def all_of(self, kind: type[_AnyEvent], **fields: Any) -> list[_AnyEvent]:
        """Records of a kind whose fields have these values."""
        found = [event for event in self.events if isinstance(event, kind)]
        return [event for event in found if all(getattr(event, name) == value for name, value in fields.items())]

    def first(self, kind: type[_AnyEvent], **fields: Any) -> Any:
        """The first such record; one in which every field is None where there is none."""
        return next(iter(self.all_of(kind, **fields)), Absent())

    def stage(self, stage: CompileStage) -> str | None:
        """'paired' where every begin of the stage has its end."""
        begins, ends = (len(self.all_of(ev.CompileSpan, stage=stage, begins=begins)) for begins in (True, False))
        if not begins and not ends:
            return None
        return "paired" if begins == ends else f"{begins} begins, {ends} ends"


class Absent:
    """A record that never came."""

    def __getattr__(self, name: str) -> None:
        return None


def run(program: Program) -> Told:
    """Run one program on a compiler that remembers none before it."""
    torch._dynamo.reset()
    listener.register_callbacks()
    _heard.clear()
    listener.take_activity_ns()
    answer = program()
    return Told(tuple(_heard), len(listener.take_activity_ns()), answer)


# ---------------------------------------------------------------- programs


class _Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # training frame
        out: torch.Tensor = self.fc(x).sin() * 2
        return out


class _Changing(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.name = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.name += "a"  # changed
        return x + len(self.name)


def _says(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print("a graph break")  # break
    return y.cos()


def _says_inside(x: torch.Tensor) -> torch.Tensor:
    return _says(x) + 1


def _says_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x.sin()
        print("a dropped frame")  # loop
    return x


def _sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def _product(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def _sums(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x @ x, 0)


def train() -> bool:
    """Forward and backward, twice. True if the second time the compiler kept silent."""
    torch.manual_seed(0)
    net = _Net()
    net.compile()
    net(torch.ones(4, 8)).sum().backward()
    before = len(_heard)
    net(torch.ones(4, 8)).sum().backward()
    return len(_heard) == before


def break_() -> None:
    torch.compile(_says_inside, backend="eager")(torch.ones(4))


def drop() -> tuple[int, int]:
    """Frames seen and compiled, by the counters."""
    before = listener.summary()
    torch.compile(_says_in_a_loop, backend="eager")(torch.ones(4))
    return _frames_since(before)


def grow() -> None:
    compiled = torch.compile(_sine, backend="eager")
    for size in (4, 5, 6):
        compiled(torch.ones(size, 3))


def exceed() -> None:
    net = _Changing()
    net.compile(backend="eager")
    with _recompile_limit(2):
        for _ in range(4):
            net(torch.ones(4))


def _recompile_limit(limit: int) -> Any:
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    return config.patch(**{name: limit})


def fall_back() -> None:
    with torch.no_grad():
        torch.compile(_sums)(torch.ones(4, 4))


def bypass_caches() -> None:
    """A pass that has no key for the caches."""
    with torch._inductor.config.patch(post_grad_custom_post_pass=lambda graph: None), torch.no_grad():
        torch.compile(_product)(torch.ones(5, 5))


def fail_to_trace() -> ev.WorkerFailed | None:
    return _failure(lambda: torch.compile(_says_inside, backend="eager", fullgraph=True)(torch.ones(4)))


def fail_to_compile() -> ev.WorkerFailed | None:
    def backend(graph: Any, inputs: Any) -> Any:
        raise ValueError("this backend takes nothing")

    return _failure(lambda: torch.compile(_sine, backend=backend)(torch.ones(4)))


def lack_a_compiler() -> ev.WorkerFailed | None:
    with torch._inductor.config.patch({"cpp.cxx": ("/there/is/no/compiler",), "force_disable_caches": True}):
        return _failure(lambda: torch.compile(_sine)(torch.ones(7)))


def _failure(run: Callable[[], object]) -> ev.WorkerFailed | None:
    try:
        run()
    except Exception as error:
        return describe_failure(error, "first call", compiled=True, inputs_given=False)
    return None


def count() -> tuple[int, int]:
    """Frames seen and compiled, by the counters."""
    before = listener.summary()
    torch.compile(_sine, backend="eager")(torch.ones(4))
    return _frames_since(before)


def _frames_since(before: ev.CompilerSummary) -> tuple[int, int]:
    after = listener.summary()
    return after.frames_seen - before.frames_seen, after.frames_compiled - before.frames_compiled


def disable() -> ev.CompilerSummary:
    torch.compile(_sine)(torch.ones(4))
    return listener.summary()


def know_the_folders() -> str:
    compiler.assert_private_caches(os.environ[ROOT_VARIABLE])
    return "inside the private folder"


def stop_workers() -> bool:
    from torch._inductor.async_compile import shutdown_compile_workers

    compiler.stop_compile_workers()
    return callable(shutdown_compile_workers)

"""What a constructor is called with: literals, files, dataclasses, and what it says of those that do not fit."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tcompile_tui.core.argument_spec import parse_arguments
from tcompile_tui.worker.arguments import constructor_arguments
from tcompile_tui.worker.failures import StageError


@dataclasses.dataclass
class Block:
    width: int
    act: str = "relu"


@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    block: Block | None = None


class Net:
    def __init__(self, cfg: Config, depth=2, *, bias: bool = True) -> None:  # type: ignore[no-untyped-def]
        self.cfg = cfg


def free(**options: Any) -> dict[str, Any]:
    return options


def made(*texts: str, entry: Any = Net) -> dict[str, Any]:
    return constructor_arguments(entry, "Net", parse_arguments(texts))


def refusal(*texts: str) -> str:
    with pytest.raises(StageError) as caught:
        made(*texts)
    assert caught.value.fault == "input" and "\n" not in str(caught.value)
    return str(caught.value)


def test_a_dataclass_is_made_from_a_file_and_from_single_fields(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"hidden": 8, "block": {"width": 4}}))
    expected = Config(8, Block(4, "gelu"))
    assert made(f"cfg=@{file}", "cfg.block.act=gelu", "bias=false") == {"cfg": expected, "bias": False}
    assert made('cfg={"hidden": 8, "block": {"width": 4, "act": "gelu"}}') == {"cfg": expected}
    assert made("cfg.hidden=8") == {"cfg": Config(8)}


def test_what_is_no_dataclass_stays_as_it_is() -> None:
    assert made("cfg=3", "a.b=[1,2]", entry=free) == {"cfg": 3, "a": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([], "Net(cfg: Config) needs values: give --arg cfg=VALUE, or add `def make_model():`"),
        (["cfg.hiden=8"], "Config has no field 'hiden': it has hidden, block"),
        (["cfg.block.width=8"], "Config(hidden: int) needs values: give --arg cfg.hidden=VALUE"),
        (["cfg.hidden=8", "cfg.block.act=relu"], "Block(width: int) needs values: give --arg cfg.block.width=VALUE"),
        (["cfg.hidden=8", "dpth=2"], "Net has no parameter 'dpth': it takes cfg, depth, bias"),
        (["cfg=3", "cfg.hidden=8"], "cfg is 3, which has no fields"),
        (["cfg=@no.json"], "cannot read no.json: No such file"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(texts: list[str], told: str) -> None:
    assert told in refusal(*texts)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.json").write_text("{")
    assert f"{tmp_path}/bad.json is not JSON" in refusal(f"cfg=@{tmp_path}/bad.json")
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "needs PyYAML" in refusal("cfg=@config.yaml")


def test_yaml_is_read_where_its_library_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = types.ModuleType("yaml")
    vars(yaml).update(safe_load=lambda text: {"hidden": int(text.partition(":")[2])}, YAMLError=RuntimeError)
    monkeypatch.setitem(sys.modules, "yaml", yaml)
    (tmp_path / "config.yaml").write_text("hidden: 8\n")
    assert made(f"cfg=@{tmp_path}/config.yaml") == {"cfg": Config(8)}

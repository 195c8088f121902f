"""What the program says of architectures that people use, at small sizes: `python -m tests.benchmarks.zoo --python EXE`.

    python -m tests.benchmarks.zoo --python EXE [--rows FILE] [--device D] [NAME...]

EXE is an interpreter with torch, timm, torchvision and transformers. Every row is the command that a person would
type, run with the smoke preset; its result is one line of JSON in FILE (default: zoo.jsonl beside this file), and those
that are there already are not run again. At the end the table is written to zoo.md beside it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tests.benchmarks.rows import add_row, read_rows

_HERE = Path(__file__).parent
_TABLE, _ROWS = _HERE / "zoo.md", _HERE / "zoo.jsonl"
_BUDGET_S = 400
_LIMIT_S = 600.0
_IMAGE = "--dim B=2 --dim H=64 --dim W=64"
_TEXT = "--dim B=2 --dim T=32"
_SMALL = "--arg num_hidden_layers=2 --arg hidden_size=64 --arg num_attention_heads=2 --arg intermediate_size=128"


@dataclass(frozen=True)
class Model:
    """One architecture: what kind of model it is, the target, and the options that make it small."""

    kind: str
    target: str
    options: str

    @property
    def arguments(self) -> list[str]:
        return [self.target, *shlex.split(self.options)]


MODELS = (
    Model("CNN", "timm:resnet18", _IMAGE),
    Model("ViT", "timm:vit_tiny_patch16_224", "--dim B=2 --arg img_size=64 --arg depth=2"),
    Model("decoder", "transformers:gpt2", f"{_TEXT} --arg num_hidden_layers=2 --arg n_embd=64 --arg n_head=2"),
    Model("encoder", "transformers:bert", f"{_TEXT} {_SMALL}"),
    Model("ConvNeXt", "torchvision:convnext_tiny", "--dim B=1 --dim H=64 --dim W=64"),
    Model("Swin", "timm:swin_tiny_patch4_window7_224", "--dim B=1 --arg img_size=56 --arg depths=[1,1,1,1] --arg embed_dim=48"),
    Model("decoder", "transformers:llama", f"{_TEXT} {_SMALL} --arg num_key_value_heads=2"),
    Model("encoder-decoder", "transformers:t5", f"{_TEXT} --arg num_layers=1 --arg d_model=64 --arg d_ff=128 --arg num_heads=2 --arg d_kv=32"),
    Model("speech", "transformers:whisper", "--dim B=1 --dim T=16 --arg encoder_layers=1 --arg decoder_layers=1 --arg d_model=64 --arg encoder_attention_heads=2 --arg decoder_attention_heads=2 --arg max_source_positions=100"),
    Model("text and image", "transformers:clip", "--dim B=2 --arg text_config.num_hidden_layers=1 --arg vision_config.num_hidden_layers=1 --arg text_config.hidden_size=64 --arg vision_config.hidden_size=64 --arg text_config.num_attention_heads=2 --arg vision_config.num_attention_heads=2 --arg vision_config.image_size=64"),
    Model("detection", "torchvision:ssdlite320_mobilenet_v3_large", "--dim B=1 --arg num_classes=5"),
    Model("LSTM", "torch.nn:LSTM", "--arg input_size=32 --arg hidden_size=64 --input 'float32[16,4,32]'"),
    Model("segmentation", "torchvision:lraspp_mobilenet_v3_large", _IMAGE),
    Model("decoder", "transformers:mistral", f"{_TEXT} {_SMALL} --arg num_key_value_heads=2"),
    Model("CNN", "torchvision:mobilenet_v3_small", _IMAGE),
    Model("CNN", "torchvision:resnet18", f"{_IMAGE} --task train"),
    Model("ViT", "torchvision:vit_b_16", "--dim B=1 --arg image_size=32"),
    Model("ViT", "timm:deit_tiny_patch16_224", "--dim B=2 --arg img_size=64 --arg depth=2"),
    Model("encoder", "transformers:distilbert", f"{_TEXT} --arg n_layers=2 --arg dim=64 --arg hidden_dim=128 --arg n_heads=2"),
    Model("encoder", "transformers:roberta", f"{_TEXT} {_SMALL}"),
    Model("decoder", "transformers:qwen2", f"{_TEXT} {_SMALL} --arg num_key_value_heads=2"),
    Model("decoder", "transformers:opt", f"{_TEXT} --arg num_hidden_layers=2 --arg hidden_size=64 --arg num_attention_heads=2 --arg ffn_dim=128 --arg word_embed_proj_dim=64"),
    Model("ViT", "transformers:vit", f"--dim B=2 {_SMALL} --arg image_size=64"),
    Model("encoder-decoder", "transformers:bart", f"{_TEXT} --arg encoder_layers=1 --arg decoder_layers=1 --arg d_model=64 --arg encoder_attention_heads=2 --arg decoder_attention_heads=2 --arg encoder_ffn_dim=128 --arg decoder_ffn_dim=128"),
    Model("speech", "transformers:wav2vec2", f"--dim B=1 --dim L=4000 {_SMALL}"),
    Model("mixture of experts", "transformers:mixtral", f"{_TEXT} {_SMALL} --arg num_key_value_heads=2 --arg num_local_experts=2"),
    Model("state space", "transformers:mamba", f"{_TEXT} --arg num_hidden_layers=2 --arg hidden_size=64 --arg state_size=8"),
    Model("MLP-Mixer", "timm:mixer_s32_224", "--dim B=2 --arg img_size=64"),
    Model("CNN", "timm:convnext_atto", "--dim B=1 --dim H=64 --dim W=64"),
    Model("CNN", "torchvision:squeezenet1_1", _IMAGE),
    Model("CNN", "timm:regnetx_002", _IMAGE),
    Model("encoder", "transformers:electra", f"{_TEXT} {_SMALL}"),
    Model("encoder", "transformers:albert", f"{_TEXT} {_SMALL}"),
    Model("video", "torchvision:r3d_18", "--dim B=1 --dim T=4 --dim H=32 --dim W=32"),
    Model("segmentation", "transformers:segformer", "--dim B=1 --dim H=64 --dim W=64 --arg depths=[1,1,1,1]"),
    Model("CNN", "torchvision:shufflenet_v2_x0_5", _IMAGE),
    Model("decoder", "transformers:gemma", f"{_TEXT} {_SMALL} --arg num_key_value_heads=2 --arg head_dim=32"),
    Model("detection", "transformers:yolos", f"--dim B=1 {_SMALL} --arg image_size=[64,64]"),
)  # fmt: skip


def run_model(model: Model, python: str, device: str) -> dict[str, Any]:
    """Run the program as a person would; returns the row."""
    options = ["--preset", "smoke", "--budget", str(_BUDGET_S), "--device", device]
    started = monotonic()
    with tempfile.TemporaryDirectory() as runs_dir:
        command = [sys.executable, "-m", "tcompile_tui", "run", *model.arguments, *options, "--python", python]
        try:
            done = subprocess.run(
                [*command, "--json", "-", "--runs-dir", runs_dir],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False,
            )  # fmt: skip
            status, verdict, error = done.returncode, _verdict(done.stdout), done.stderr.strip()[-300:]
        except subprocess.TimeoutExpired:
            status, verdict, error = -1, {}, f"did not end in {_LIMIT_S:.0f} s"
    modes = list(verdict.get("per_mode", {}).values())
    return {
        "kind": model.kind,
        "target": model.target,
        "options": model.options,
        "status": status,
        "decision": verdict.get("decision"),
        "headline": verdict.get("headline") or error,
        "findings": [finding["id"] for finding in verdict.get("findings", [])],
        "graphs": modes[0]["graphs"] if modes else None,
        "breaks": modes[0]["graph_breaks"] if modes else None,
        "recompiles": modes[0]["recompiles"] if modes else None,
        "agreement": modes[0]["agreement"] if modes else None,
        "torch": verdict.get("torch"),
        "machine": verdict.get("device"),
        "seconds": round(monotonic() - started),
    }


def _verdict(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The page that is kept: one row for each model, those without a result as "not run"."""
    known = {(row["target"], row["options"]): row for row in rows}
    lines = [
        "# Architectures",
        "",
        *_preamble(rows),
        "",
        "| kind | model | graphs | breaks | recompiles | outputs | decision | findings |",
        "|---|---|---:|---:|---:|---|---|---|",
        *(_row(model, known.get((model.target, model.options))) for model in MODELS),
        "",
        "## Commands",
        "",
        f"Each is `tcompile-tui run ... --preset smoke --budget {_BUDGET_S} --python EXE` with:",
        "",
        "```sh",
        *(f"{model.target} {model.options}".strip() for model in MODELS),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _preamble(rows: Sequence[dict[str, Any]]) -> list[str]:
    places = sorted({f"torch {row['torch']} on {row['machine']}" for row in rows if row["torch"]})
    decided = sum(row["status"] == 0 for row in rows)
    return [
        f"`python -m tests.benchmarks.zoo --python EXE`: {', '.join(places)}. {decided} of the {len(rows)} models that were",
        f"run came to a decision; {len(MODELS) - len(rows)} were not run. Random weights, small sizes and a busy machine: what",
        "counts here is what the compiler does with a model, not the speed. (torchvision's own operators need a CUDA build of",
        "torch; there `nms` was a stand-in of a few lines, in the interpreter's environment.)",
    ]


def _row(model: Model, row: dict[str, Any] | None) -> str:
    if row is None:
        return f"| {model.kind} | `{model.target}` | | | | | not run | |"
    counts = ("n/a" if row[name] is None else str(row[name]) for name in ("graphs", "breaks", "recompiles"))
    ended = row["decision"] or "none"
    if row["status"] != 0:
        ended += f" ({row['headline'][:100]})".replace("|", "\\|").replace("\n", " ")
    cells = [model.kind, f"`{model.target}`", *counts, row["agreement"] or "n/a", ended, ", ".join(row["findings"])]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, metavar="EXE")
    parser.add_argument("--rows", type=Path, default=_ROWS, metavar="FILE")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only models whose target holds one of these")
    options = parser.parse_args()
    done = {(row["target"], row["options"]) for row in read_rows(options.rows)}
    for model in MODELS:
        wanted = not options.names or any(name in model.target for name in options.names)
        if not wanted or (model.target, model.options) in done:
            continue
        row = run_model(model, options.python, options.device)
        add_row(options.rows, row)
        print(f"{row['decision'] or 'none':<20} {row['seconds']:>4} s  {model.target}: {row['headline']}", flush=True)
    _TABLE.write_text(table(read_rows(options.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

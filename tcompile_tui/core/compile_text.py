"""The Python lines that compile a model as an arm of a run did: what was measured is what is advised."""

from __future__ import annotations

from tcompile_tui.core.compile_options import CompiledBlocks, CompileOptions, Regions


def compile_lines(
    options: CompileOptions, wrapped: bool, blocks: CompiledBlocks | None, compiled: str = "model"
) -> list[str]:
    """Statements, a line each, that compile the variable `model`; where torch wraps it, `compiled` is the wrapper.
    `wrapped` and `blocks` are as in ModelCompiled."""
    arguments = options.arguments
    whole = f"{compiled} = {compile_call('model', arguments)}" if wrapped else f"model.compile({arguments})"
    if options.regions is None or blocks is None:
        return [whole]
    if options.regions is Regions.NESTED:
        return [f"{blocks.block}.forward = torch.compiler.nested_compile_region({blocks.block}.forward)", whole]
    return [_replace_blocks(arguments, blocks) if wrapped else _compile_blocks(arguments, blocks)]


def compile_call(what: str, arguments: str) -> str:
    return f"torch.compile({what}{', ' if arguments else ''}{arguments})"


def _compile_blocks(arguments: str, blocks: CompiledBlocks) -> str:
    if blocks.container is not None:
        found = f"{_path_text(blocks.container)}.children()"
    else:
        found = f'[m for m in model.modules() if type(m).__name__ == "{blocks.block}"]'
    return f"for block in {found}: block.compile({arguments})"


def _replace_blocks(arguments: str, blocks: CompiledBlocks) -> str:
    call = compile_call("block", arguments)
    if blocks.container is not None:
        parent = _path_text(blocks.container)
        return f"for name, block in list({parent}.named_children()): setattr({parent}, name, {call})"
    found = "(parent, name, block) for parent in model.modules() for name, block in parent.named_children()"
    where = f'type(block).__name__ == "{blocks.block}"'
    return f"for parent, name, block in [{found} if {where}]: setattr(parent, name, {call})"


def _path_text(path: str) -> str:
    if not path:
        return "model"
    parts = path.split(".")
    return f"model.{path}" if all(part.isidentifier() for part in parts) else f'model.get_submodule("{path}")'

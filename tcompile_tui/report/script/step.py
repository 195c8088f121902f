"""The piece with one step of each arm: as stepping.py of the worker has it."""

from __future__ import annotations

from tcompile_tui.core.compile_options import Regions
from tcompile_tui.core.compile_text import compile_call, compile_lines
from tcompile_tui.core.spec import Source
from tcompile_tui.core.step_spec import BuiltinOptimizer, FileFunction
from tcompile_tui.report.script.facts import Facts
from tcompile_tui.report.script.model import load_function

_MEAN_SQUARE = '''\
def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "keys"):
        for key in value.keys():
            yield from tensors(value[key])
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors(getattr(value, name))


def mean_square(output):
    """Of the first floating output that has a gradient."""
    found = next(t for t in tensors(output) if t.is_floating_point() and t.requires_grad)
    return found.float().square().mean()


'''
_CLASSIFICATION = '''\
def loss_of(output):
    """Cross-entropy against class 0."""
    while not hasattr(output, "shape"):
        output = next(iter(output.values())) if hasattr(output, "values") else output[0]
    if output.dim() < 2:
        return output.float().square().mean()
    target = torch.zeros(output.shape[:1] + output.shape[2:], dtype=torch.int64, device=output.device)
    return torch.nn.functional.cross_entropy(output.float(), target)'''
_OF_TRANSFORMERS = f'''\
{_MEAN_SQUARE}\
def loss_of(output):
    """The model's own, from its labels."""
    loss = getattr(output, "loss", None)
    return loss if loss is not None else mean_square(output)'''


def steps_piece(facts: Facts) -> str:
    training = facts.model.training
    arms = ("(eager_model, eager_optimizer)", "(compiled_model, compiled_optimizer)")
    eager_arm, compiled_arm = arms if training else ("(eager_model,)", "(compiled_model,)")
    return f"""\
# ---------------------------------------------------------------- one step of each arm


{(_training(facts) if training else _inference(facts)).strip()}


{_second_copy(facts)}
{_compiling(facts)}
eager_arm, compiled_arm = {eager_arm}, {compiled_arm}
eager, compiled = make_step(batches, *eager_arm), make_step(batches, *compiled_arm)"""


def _inference(facts: Facts) -> str:
    contexts = ", ".join(["torch.no_grad()", *([facts.autocast] if facts.autocast else [])])
    return f"""\
def make_step(batches, model):
    def step(index):
{_mark(facts, 8)}\
        args, kwargs = batches[index % len(batches)]
        with {contexts}:
            return model(*args, **kwargs)

    return step"""


def _training(facts: Facts) -> str:
    count, scaled = facts.spec.step.accumulate, facts.spec.amp == "fp16"
    loss = "loss_of(model(*args, **kwargs))"
    if facts.autocast:
        forward = f"            with {facts.autocast}:\n                loss = {loss}"
    else:
        forward = f"            loss = {loss}"
    shared = "loss" if count == 1 else f"(loss / {count})"
    backward = f"scaler.scale({shared.strip('()')}).backward()" if scaled else f"{shared}.backward()"
    scaler = f'    scaler = torch.amp.GradScaler("{facts.device}")\n' if scaled else ""
    return f"""\
{_loss(facts)}


def make_optimizer(model):
    # Learning rate 0: the work of a step without its drift.
{_optimizer(facts)}


def make_step(batches, model, optimizer):
{scaler}
    def step(index):
        optimizer.zero_grad(set_to_none=True)
        for micro in range(index * {count}, (index + 1) * {count}):
{_mark(facts, 12)}\
            args, kwargs = batches[micro % len(batches)]
{forward}
            {backward}
{_update(facts, scaled)}

    return step"""


def _loss(facts: Facts) -> str:
    step = facts.spec.step
    if step.loss is not None:
        return f"loss_of = {load_function(step.loss.path, step.loss.name, facts.cwd)}"
    if facts.source is Source.TRANSFORMERS:
        return _OF_TRANSFORMERS
    if facts.source is not None:
        return _CLASSIFICATION
    return "loss_of = module.loss" if facts.own_loss else f"{_MEAN_SQUARE}loss_of = mean_square"


def _optimizer(facts: Facts) -> str:
    chosen = facts.spec.step.optimizer
    if isinstance(chosen, FileFunction):
        return f"""\
    optimizer = {load_function(chosen.path, chosen.name, facts.cwd)}(model)
    for group in optimizer.param_groups:
        group["lr"] = group["lr"].zero_() if isinstance(group["lr"], torch.Tensor) else 0.0
    return optimizer"""
    trained = "[p for p in model.parameters() if p.requires_grad]"
    if chosen is BuiltinOptimizer.SGD:
        return f"    return torch.optim.SGD({trained}, lr=0.0, momentum=0.9)"
    return f"    return torch.optim.AdamW({trained}, lr=0.0)"


def _update(facts: Facts, scaled: bool) -> str:
    norm = facts.spec.step.grad_clip
    lines = ["scaler.unscale_(optimizer)"] if scaled and norm is not None else []
    if norm is not None:
        lines.append(f"torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], {norm!r})")
    lines += ["scaler.step(optimizer)", "scaler.update()"] if scaled else ["optimizer.step()"]
    return "\n".join(f"        {line}" for line in lines)


def _compiling(facts: Facts) -> str:
    """As the run did: the optimizers are there before anything is compiled."""
    result = facts.result
    options, lines = result.mode.options, []
    if facts.model.training:
        lines.append("eager_optimizer, compiled_optimizer = make_optimizer(eager_model), make_optimizer(model)")
    if options.regions is Regions.NESTED and result.blocks is not None:
        lines += _own_class(result.blocks.block)
    lines += compile_lines(options, result.wrapped, result.blocks, compiled="compiled_model")
    if not result.wrapped or options.regions is Regions.REGIONAL:
        lines.append("compiled_model = model")
    if facts.spec.step.compile_optimizer:
        lines.append(f"compiled_optimizer.step = {compile_call('compiled_optimizer.step', options.arguments)}")
    return "\n".join(lines)


def _own_class(block: str) -> list[str]:
    """The eager arm's blocks are of the same class, so those of the compiled one get a class of their own."""
    return [
        f'blocks = [m for m in model.modules() if type(m).__name__ == "{block}"]',
        f"{block} = type(type(blocks[0]).__name__, (type(blocks[0]),), {{}})",
        "for block in blocks:",
        f"    block.__class__ = {block}",
    ]


def _second_copy(facts: Facts) -> str:
    """As the run got it."""
    how = next((notice.text for notice in facts.run.state.notices if notice.code == "second-copy"), "")
    if "built again" in how:
        return "eager_model = build()\neager_model.load_state_dict(model.state_dict())"
    if "share one set" in how:
        shared = "{id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}"
        return f"# Both share every tensor, because memory is short.\neager_model = copy.deepcopy(model, {shared})"
    return "eager_model = copy.deepcopy(model)"


def _mark(facts: Facts, indent: int) -> str:
    return f"{' ' * indent}torch.compiler.cudagraph_mark_step_begin()\n" if facts.cuda else ""

"""The piece that runs the end of an epoch: a smaller last batch and evaluation, as epoch.py of the worker has them."""

from __future__ import annotations

from collections.abc import Iterator

from tcompile_tui.report.script.facts import Facts

_CUT = '''\
def tensors_of(value):
    """In the order in which the model gets them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(item)


def first_samples(value, size, full):
    """The same with `size` samples of every tensor that has `full` of them."""
    if isinstance(value, torch.Tensor):
        cut = value.dim() > 0 and value.size(0) == full
        return value.detach()[:size].clone().requires_grad_(value.requires_grad) if cut else value
    if isinstance(value, (tuple, list)):
        items = [first_samples(item, size, full) for item in value]
        return items if isinstance(value, list) else value._make(items) if hasattr(value, "_make") else tuple(items)
    return {key: first_samples(item, size, full) for key, item in value.items()} if isinstance(value, dict) else value


'''
_EVALUATE = """\
def evaluate(model, guard):
    args, kwargs = batches[0]
    training = [part for part in model.modules() if part.training]
    model.eval()
    with {contexts}:
        model(*args, **kwargs)
    for part in training:
        part.training = True


"""


def epoch_piece(facts: Facts) -> str:
    """Functions, of which `end_of_epoch(arm)` is called; nothing for a run of full batches only."""
    epoch = facts.epoch_end
    if epoch is None:
        return ""
    contexts = ", ".join(["guard()", *([facts.autocast] if facts.autocast else [])])
    return f'''\
{_CUT if epoch.last is not None else ""}{_EVALUATE.format(contexts=contexts) if epoch.eval else ""}\
def end_of_epoch(arm):
    """Seconds that it takes the first time, when a new shape and evaluation are compiled for, beyond the second."""
{"".join(f"    {line}{chr(10)}" for line in _prepared(facts))}\
    took = []
    for _ in range(2):
        began = time.perf_counter()
{"".join(f"        {line}{chr(10)}" for line in _steps(facts))}\
        took.append(time.perf_counter() - began)
    return max(0.0, took[0] - took[1])'''


def _prepared(facts: Facts) -> Iterator[str]:
    epoch = facts.epoch_end
    if epoch is not None and epoch.last is not None:
        yield "full = next(t for t in tensors_of(batches[0]) if t.dim() > 0).size(0)"
        yield f"last = make_step([first_samples(batches[0], {epoch.last}, full)], *arm)"


def _steps(facts: Facts) -> Iterator[str]:
    epoch = facts.epoch_end
    if epoch is not None and epoch.last is not None:
        yield "last(0)"
    if epoch is not None and epoch.eval:
        yield "for guard in (torch.no_grad, torch.inference_mode):"
        yield "    evaluate(arm[0], guard)"
    if facts.cuda:
        yield "torch.cuda.synchronize()"

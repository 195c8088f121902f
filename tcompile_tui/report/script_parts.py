"""The parts of the script that are nearly the same for every run."""

from __future__ import annotations

HEADERS = """\
    # The C++ headers that torch precompiles once per machine are no part of a start.
    first = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": os.path.join(caches, "first")}
    small = "import torch; torch.compile(lambda x: (x * 2).relu())(torch.randn(64))"
    subprocess.run([sys.executable, "-c", small], env=first, check=True)
"""

DEFAULT_LOSS = '''\
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


def loss_of(output):
    """Mean of squares of the first floating output that has a gradient."""
    found = next(t for t in tensors(output) if t.is_floating_point() and t.requires_grad)
    return found.float().square().mean()'''


def timer(cuda: bool) -> str:
    """Step times as the run took them: device time between events on CUDA, wall time on the CPU."""
    if cuda:
        body = """\
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    started = time.perf_counter()
    events[0].record()
    for i in range(steps):
        step(first + i)
        events[i + 1].record()
    torch.cuda.synchronize()
    if steps == 1:  # what a person waits for, compiling included
        return [time.perf_counter() - started]
    return [before.elapsed_time(after) / 1e3 for before, after in zip(events, events[1:])]"""
    else:
        body = """\
    clock = [time.perf_counter()]
    for i in range(steps):
        step(first + i)
        clock.append(time.perf_counter())
    return [after - before for before, after in zip(clock, clock[1:])]"""
    return f'''\
# ---------------------------------------------------------------- timing


def time_steps(step, first, steps):
    """Seconds of each step, of steps in a row without synchronisation in between."""
{body}


def warm_up(step, seconds=5.0):
    """Seconds of each step until they have taken `seconds`; the first, which may compile, is not counted."""
    times = time_steps(step, 0, 1)
    while len(times) < 12 or sum(times[1:]) < seconds:
        times += time_steps(step, len(times), 1 if len(times) < 12 else 8)
    return times'''


def comparison(found: str, further_calls: bool) -> str:
    """Warm-up, pairs and what is printed; `found` is what the run found."""
    further = ""
    if further_calls:
        further = """
    others = [place(as_call(made)) for made in module.more_inputs()]
    for step in (make_step(eager_model, others), make_step(compiled_model, others)):
        time_steps(step, 0, 2 * len(others))
    time_steps(compiled, 0, 3)
"""
    return f'''\
def compare(eager_s, compiled_s):
    """ln(eager / compiled) of neighbouring blocks, in the order ABBA so that drift cancels."""
    fastest = min(eager_s, compiled_s)
    steps = max(8, math.ceil(0.02 / fastest))
    if steps * max(eager_s, compiled_s) > 1.0:
        steps = max(2, int(1.0 / max(eager_s, compiled_s)))
    ratios, eager_levels, compiled_levels = [], [], []
    for pair in range(PAIRS):
        level = {{}}
        for step in (eager, compiled) if pair % 2 == 0 else (compiled, eager):
            # The first two steps after the switch find the other arm's data in the caches.
            level[step] = statistics.median(time_steps(step, pair * (steps + 2), steps + 2)[2:])
        ratios.append(math.log(level[eager] / level[compiled]))
        eager_levels.append(1e3 * level[eager])
        compiled_levels.append(1e3 * level[compiled])
        print(f"\\rpair {{pair + 1}} of {{PAIRS}}", end="", file=sys.stderr)
    print(file=sys.stderr)
    eager_ms, compiled_ms = statistics.median(eager_levels), statistics.median(compiled_levels)
    print(f"eager {{eager_ms:.3f}} ms, compiled {{compiled_ms:.3f}} ms a step")
    return ratios


def main():
    first_compiled = warm_up(compiled)
    compiled_s = statistics.median(first_compiled[len(first_compiled) // 2 :])
    if COLD_START:
        start_s = IMPORT_S + sum(first_compiled[:10]) - 10 * compiled_s
        print(f"cold start {{start_s:.1f}} s: import of the compiler and the first steps beyond their steady time")
{further}
    first_eager = warm_up(eager, 2.0)
    ratios = sorted(compare(statistics.median(first_eager[len(first_eager) // 2 :]), compiled_s))
    kept = ratios[PAIRS // 10 : PAIRS - PAIRS // 10]
    speedup = math.exp(statistics.fmean(kept))
    spread = statistics.stdev(ratios) / math.sqrt(PAIRS)
    print(f"speedup {{speedup:.3f}}x, standard error {{100 * spread:.1f}} %, {{PAIRS}} pairs, one process")
    print("the run found {found}")
    if COLD_START:
        shutil.rmtree(caches, ignore_errors=True)


if __name__ == "__main__":
    main()'''

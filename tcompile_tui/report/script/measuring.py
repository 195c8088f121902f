"""The pieces that time and compare: nearly the same for every run."""

from __future__ import annotations

from tcompile_tui.core.findings import speedup_text
from tcompile_tui.core.units import duration
from tcompile_tui.report.script.facts import Facts, literal

HEADERS = """\
    # The C++ headers that torch precompiles once per machine are no part of a start.
    first = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": os.path.join(caches, "first")}
    small = "import torch; torch.compile(lambda x: (x * 2).relu())(torch.randn(64))"
    subprocess.run([sys.executable, "-c", small], env=first, check=True)
"""

_CUDA_TIMER = '''\
def time_steps(step, first, steps, lead=0, group=1):
    """Seconds of each group of steps, between events on the device; nothing waits in between, and `lead` steps that
    come first are not timed. One step alone is timed as a person waits for it, compiling included."""
    ends = [*range(group, steps, group), steps]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(len(ends) + 1)]
    torch.cuda.synchronize()
    started = time.perf_counter()
    for i in range(lead):
        step(first + i)
    events[0].record()
    marks = dict(zip(ends, events[1:]))
    for i in range(steps):
        step(first + lead + i)
        if i + 1 in marks:
            marks[i + 1].record()
    torch.cuda.synchronize()
    if lead + steps == 1:
        return [time.perf_counter() - started]
    sizes = [end - before for before, end in zip([0, *ends], ends)]
    return [a.elapsed_time(b) / 1e3 / size for a, b, size in zip(events, events[1:], sizes)]'''
_CPU_TIMER = '''\
def time_steps(step, first, steps, lead=0, group=1):
    """Seconds of each step of a row; `lead` steps that come first are not timed."""
    for i in range(lead):
        step(first + i)
    clock = [time.perf_counter()]
    for i in range(steps):
        step(first + lead + i)
        clock.append(time.perf_counter())
    return [after - before for before, after in zip(clock, clock[1:])]'''


def timer_piece(cuda: bool) -> str:
    """Step times as the run took them: device time of groups of about 2 ms on CUDA, wall time on the CPU."""
    return f'''\
# ---------------------------------------------------------------- timing


{_CUDA_TIMER if cuda else _CPU_TIMER}


def warm_up(step, seconds=5.0):
    """Seconds of each step until they have taken `seconds`; the first, which may compile, is not counted."""
    times = time_steps(step, 0, 1)
    while len(times) < 12 or sum(times[1:]) < seconds:
        times += time_steps(step, len(times), 1 if len(times) < 12 else 8)
    return times'''


def comparison_piece(facts: Facts) -> str:
    """Warm-up, pairs, and what is printed beside what the run found."""
    further = ""
    if facts.further_calls:
        further = """
    others = [place(as_call(made)) for made in module.more_inputs()]
    for step in (make_step(others, *eager_arm), make_step(others, *compiled_arm)):
        time_steps(step, 0, 2 * len(others))
    time_steps(compiled, 0, 3)
"""
    epoch = "    epoch_s = end_of_epoch(compiled_arm)\n" if facts.epoch_end is not None else ""
    if epoch:
        further += """
    end_of_epoch(eager_arm)
    time_steps(compiled, 0, 3)
"""
    start = facts.result.cold_start
    found = speedup_text(facts.result)
    return f'''\
{_of_the_run(facts)}


def interval(ratios):
    """Mean of the logarithms without their outer tenths, and half of its 95 % interval: Yuen's error, wider where
    neighbouring pairs are alike, and for what differs between processes."""
    n, cut = len(ratios), len(ratios) // 10
    ordered = sorted(ratios)
    held = [min(max(ratio, ordered[cut]), ordered[n - cut - 1]) for ratio in ratios]
    from_mean = [ratio - statistics.fmean(held) for ratio in held]
    power = sum(each**2 for each in from_mean)
    alike = sum(a * b for a, b in zip(from_mean, from_mean[1:])) / power if power else 0.0
    alike = max(0.0, min(0.9, alike + (1 + 4 * alike) / n))
    error = 1.25 * statistics.stdev(held) / ((1 - 2 * cut / n) * math.sqrt(n)) * math.sqrt((1 + alike) / (1 - alike))
    return statistics.fmean(ordered[cut : n - cut]), math.hypot(2.04 * error, 2.8 * BETWEEN_PROCESSES)


def compare(eager_s, compiled_s):
    """(ln(eager / compiled) of each pair, ms of an eager and of a compiled step, share of the time that this thread
    did not run). The blocks of a pair are neighbours, in the order ABBA so that drift cancels."""
    slowest = max(eager_s, compiled_s)
    steps = max(8, math.ceil(0.02 / min(eager_s, compiled_s)))
    if steps * slowest > 1.0:
        steps = max(8, math.ceil(0.02 / slowest))
    if steps * slowest > 1.0:
        steps = max(2, int(1.0 / slowest))
    groups = {{eager: max(1, round(0.002 / eager_s)), compiled: max(1, round(0.002 / compiled_s))}}
    ratios, levels, began, ran = [], {{eager: [], compiled: []}}, time.perf_counter(), time.thread_time()
    for pair in range(PAIRS):
        for step in (eager, compiled) if pair % 2 == 0 else (compiled, eager):
            # The first two steps after the switch find the other arm's data in the caches.
            times = time_steps(step, pair * (steps + 2), steps, lead=2, group=groups[step])
            levels[step].append(1e3 * statistics.median(times))
        ratios.append(math.log(levels[eager][-1] / levels[compiled][-1]))
        if time.perf_counter() - began > 60 and pair >= 19:
            break
    lost = 1 - (time.thread_time() - ran) / (time.perf_counter() - began)
    return ratios, statistics.median(levels[eager]), statistics.median(levels[compiled]), lost


def faults(steps=8):
    """Pages that an eager step gets from the system. glibc may give a step's memory back at its end, or not: that
    differs from process to process, and makes a memory-bound step up to three times as long."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    time_steps(eager, 0, steps)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / steps


def differences(eager_ms, lost):
    """What is not as in the run, and moves these figures."""
    if torch.__version__ != RUN["torch"]:
        yield f"this is torch {{torch.__version__}}, the run had {{RUN['torch']}}"
    device = torch.cuda.get_device_name() if DEVICE.type == "cuda" else None
    if device is not None and device != RUN["device"]:
        yield f"this is a {{device}}, the run had a {{RUN['device']}}"
    if RUN["threads"] not in (None, torch.get_num_threads()):
        yield f"{{torch.get_num_threads()}} threads here, {{RUN['threads']}} in the run"
    if DEVICE.type == "cpu" and lost > 0.03:
        yield f"other work kept this one from the CPU for {{100 * lost:.0f}} % of the time: measure on an idle machine"
    if RUN["disturbed"]:
        yield "other work disturbed the run"
    pages = faults() if DEVICE.type == "cpu" else 0
    if pages > 500:
        yield f"each eager step takes {{pages:.0f}} pages of memory from the system and gives them back, which another"
        yield "  process may not; it does not with MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000"
    if RUN["eager_ms"] and not 0.9 < eager_ms / RUN["eager_ms"] < 1.1:
        yield f"an eager step takes {{eager_ms / RUN['eager_ms']:.2f}} times what it took in the run"


def main():
    first_compiled = warm_up(compiled)
    compiled_s = statistics.median(first_compiled[len(first_compiled) // 2 :])
{epoch}\
    if COLD_START:
        start_s = IMPORT_S + sum(first_compiled[:10]) - 10 * compiled_s{" + epoch_s" if epoch else ""}
        print(f"cold start {{start_s:.1f}} s: import of the compiler and the first steps beyond their steady time")
        print("the run found {duration(start.total_s if start is not None else None)}")
{further}
    first_eager = warm_up(eager, 2.0)
    ratios, eager_ms, compiled_ms, lost = compare(statistics.median(first_eager[len(first_eager) // 2 :]), compiled_s)
    middle, half = interval(ratios)
    low, high = math.exp(middle - half), math.exp(middle + half)
    print(f"eager {{eager_ms:.3f}} ms, compiled {{compiled_ms:.3f}} ms a step")
    print(f"speedup {{math.exp(middle):.3f}}x ({{low:.3f}}x to {{high:.3f}}x), {{len(ratios)}} pairs, one process")
    if RUN["speedup"]:
        met = low <= RUN["speedup"][1] and RUN["speedup"][0] <= high
        print(f"the run found {found}: the intervals {{'overlap' if met else 'do not overlap'}}")
    for difference in differences(eager_ms, lost):
        print(difference if difference.startswith("  ") else f"- {{difference}}")
    if COLD_START:
        shutil.rmtree(caches, ignore_errors=True)


if __name__ == "__main__":
    main()'''


def _of_the_run(facts: Facts) -> str:
    """What the figures are held against, and the spread between processes that the run's interval holds too."""
    started, result = facts.run.state.run, facts.result
    assert started is not None
    speedup = result.speedup
    told = next((p.facts for p in facts.run.state.processes.values() if p.facts is not None), None)
    values = {
        "speedup": (round(speedup.lo, 5), round(speedup.hi, 5)) if speedup is not None else None,
        "eager_ms": round(result.eager_ms, 5) if result.eager_ms is not None else None,
        "torch": started.torch_version,
        "device": started.device_name,
        "threads": told.threads if told is not None and not facts.cuda else None,
        "disturbed": result.host_contended,
    }
    lines = "".join(f"    {literal(name)}: {literal(value)},\n" for name, value in values.items())
    between = speedup.between_sd if speedup is not None else 0.0
    return f"RUN = {{\n{lines}}}\nBETWEEN_PROCESSES = {between:.5f}"

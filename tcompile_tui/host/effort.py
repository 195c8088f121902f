"""How much time each preset takes for what."""

from __future__ import annotations

from dataclasses import dataclass

from tcompile_tui.core.spec import Preset


@dataclass(frozen=True)
class Effort:
    """How long to measure, by preset. Warm-up and pairs in seconds of step time, for each arm and process; the
    numbers of cold and warm processes of a mode. `apart_rounds`: how often A B B A is run where both arms do not fit
    side by side. `always`: also where a further one could not change the decision."""

    warmup_s: float
    pairs_s: float
    max_pairs: int
    cold_processes: int = 1
    warm_processes: int = 1
    apart_rounds: int = 1
    always: bool = False


EFFORTS = {
    Preset.SMOKE: Effort(warmup_s=1.0, pairs_s=4.0, max_pairs=10),
    Preset.QUICK: Effort(warmup_s=4.0, pairs_s=20.0, max_pairs=200),
    Preset.STANDARD: Effort(warmup_s=20.0, pairs_s=40.0, max_pairs=200, warm_processes=3, apart_rounds=2),
    Preset.THOROUGH: Effort(
        warmup_s=40.0, pairs_s=160.0, max_pairs=200, cold_processes=3, warm_processes=5, apart_rounds=3, always=True
    ),
}

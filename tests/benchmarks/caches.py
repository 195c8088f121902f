"""How long looking at a very large cache and clearing it takes, and whether the screen stalls meanwhile:
`python -m tests.benchmarks.caches [--files N]`, by default 100,000."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from tcompile_tui.host.cache_clear import Choice, choose, clear
from tcompile_tui.host.cache_places import Place
from tcompile_tui.host.cache_scan import scan
from tcompile_tui.ui.screens import caches
from tcompile_tui.ui.screens.caches import CachesScreen
from tests.benchmarks.record import Figure, parser, publish, record, table
from tests.host.cache_trees import code, inductor
from tests.ui.screen_app import ScreenApp, screen_text

_BEAT_S = 0.02


def fill(root: Path, files: int) -> Place:
    place = inductor(root)
    for number in range(files):
        path = root / code(number)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return place


async def longest_stall_s(place: Place) -> float:
    """The longest time without a beat of the event loop while the screen looks at `place`."""
    app, longest_s, beats = ScreenApp(CachesScreen), 0.0, 0
    with patch.object(caches, "all_places", lambda *arguments: []):
        async with app.run_test() as pilot:
            await pilot.pause()
            with patch.object(caches, "all_places", lambda *arguments: [place]):
                app.screen.run_worker(_press_look(app))
                await asyncio.sleep(0)
                while "generated code" not in screen_text(app):
                    last_s = time.perf_counter()
                    await asyncio.sleep(_BEAT_S)
                    longest_s = max(longest_s, time.perf_counter() - last_s - _BEAT_S)
                    beats += 1
    assert beats > 3, "it was over before a beat was missed"
    return longest_s


async def _press_look(app: ScreenApp) -> None:
    await app.screen.run_action("look")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--files", type=int, default=100_000)
    asked = options.parse_args()
    files = asked.files
    with tempfile.TemporaryDirectory() as folder:
        place = fill(Path(folder) / "i", files)
        stall_s = asyncio.run(longest_stall_s(place))
        times = [time.perf_counter()]
        contents = scan(place)
        times.append(time.perf_counter())
        chosen = choose([contents], Choice(), time.time())
        times.append(time.perf_counter())
        cleared = clear(chosen)
        times.append(time.perf_counter())
    assert cleared.files == files and not cleared.failures
    spent = {name: end_s - start_s for name, start_s, end_s in zip(("look", "choose", "clear"), times, times[1:])}
    cells = [(f"{name} {files:,} files", f"{s:.2f} s", f"{s / files * 1e6:.1f} us") for name, s in spent.items()]
    figures = [
        *(Figure(f"Caches: {name} {files:,} files", f"{s:.2f} s") for name, s in spent.items()),
        Figure("Caches: longest stall of the screen while it looks", f"{1e3 * stall_s:.0f} ms"),
    ]
    publish(record("caches", figures, [table(("what", "in all", "a file"), cells)]), asked.json)


if __name__ == "__main__":
    main()

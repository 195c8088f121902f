"""A real run, recorded on an H200 and shipped with the program."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BUNDLE = Path(__file__).parent.parent / "data" / "demo"


@contextmanager
def unpacked_demo() -> Iterator[Path]:
    """The demo's run folder, for as long as the context is open."""
    with tempfile.TemporaryDirectory(prefix="tcompile-tui-demo-") as name:
        folder = Path(name)
        for source in sorted(_BUNDLE.iterdir()):
            if source.suffix == ".gz":
                (folder / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
            else:
                (folder / source.name).write_bytes(source.read_bytes())
        yield folder

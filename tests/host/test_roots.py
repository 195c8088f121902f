"""Private folders: precompiled headers are shared by the runs of one interpreter with its torch, and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.host import roots


def test_headers_of_another_torch_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold start would pay for its own: some 20 s that are no part of it."""
    monkeypatch.setenv(roots.PRIVATE_VARIABLE, str(tmp_path / "private"))
    monkeypatch.delenv(roots.HEADERS_VARIABLE, raising=False)
    one, other = (roots.interpreter_key("/env/bin/python", version) for version in ("2.12.1", "2.13.0"))
    root = roots.create_root(interpreter=one)
    (link,) = Path(root.environment["TMPDIR"]).glob("torchinductor_*/precompiled_headers")
    (link / "cabc.h.gch").touch()
    assert roots.headers_exist(one) and not roots.headers_exist(other)
    monkeypatch.setenv("CXX", "clang++")
    assert roots.interpreter_key("/env/bin/python", "2.12.1") != one
    assert root.path.stat().st_mode & 0o777 == 0o700

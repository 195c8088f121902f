"""Open the application in this terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tcompile_tui.ui.feeds import Feed


def open_app(target: str | None = None, feed: Feed | None = None) -> NoReturn:
    """Run it until it is left, and leave with its status. Textual draws on stderr, so that is what has to be a
    terminal."""
    if not sys.__stderr__ or not sys.__stderr__.isatty():
        print("error: the application needs a terminal; use `tcompile-tui run` in scripts", file=sys.stderr)
        raise SystemExit(2)
    from tcompile_tui.config import load_config
    from tcompile_tui.paths import default_runs_dir
    from tcompile_tui.ui.app import TCompileApp

    config = load_config()
    application = TCompileApp(default_runs_dir(config), target, feed, config=config)
    application.run()
    raise SystemExit(application.return_code or 0)

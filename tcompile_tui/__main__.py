"""The program's entry; `python -m tcompile_tui` is the same as `tcompile-tui`."""

from __future__ import annotations

import sys


def main() -> None:
    """A target alone, or nothing, opens the application at once; the command line is read for everything else."""
    arguments = sys.argv[1:]
    if not arguments or (len(arguments) == 1 and _is_target(arguments[0])):
        from tcompile_tui.ui.start import open_app

        open_app(arguments[0] if arguments else None)
    else:
        from tcompile_tui.cli import main as command_line

        command_line()


def _is_target(word: str) -> bool:
    """A path or `package.module:Name`; no command's name has any of these characters."""
    return not word.startswith("-") and any(mark in word for mark in "./:")


if __name__ == "__main__":
    main()

"""`python -m tcompile_tui` is the same as `tcompile-tui`."""

from tcompile_tui.cli import main

if __name__ == "__main__":
    main()

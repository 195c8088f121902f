"""The terminal application: starts `tcompile-tui run`, follows run folders, never imports torch."""

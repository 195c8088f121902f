"""Pure logic: what to run, what happened, what it means. Imports neither torch nor textual."""

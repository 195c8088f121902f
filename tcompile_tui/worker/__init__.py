"""The measured process: the only part that imports torch and the user's code."""

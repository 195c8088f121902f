"""Every case through the whole program. Too long for a test run: `python -m tests.full`."""

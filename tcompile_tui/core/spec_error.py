"""What is said of something that the user wrote and that cannot be understood."""

from __future__ import annotations


class SpecError(ValueError):
    """Something the user wrote cannot be understood; the message is one printable line for them."""

    def __init__(self, message: str) -> None:
        printable = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        super().__init__("".join(printable))

"""Words three rows high, in the style of Textual's Digits."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

# Three rows a letter; a letter that is missing is shown as it is, in the middle row.
_LETTERS = {
    " ": (" ", " ", " "),
    "A": ("┏━┓", "┣━┫", "╹ ╹"), "B": ("┏┓ ", "┣┻┓", "┗━┛"), "C": ("┏━╸", "┃  ", "┗━╸"), "D": ("╺┳┓", " ┃┃", "╺┻┛"),
    "E": ("┏━╸", "┣╸ ", "┗━╸"), "F": ("┏━╸", "┣╸ ", "╹  "), "G": ("┏━╸", "┃╺┓", "┗━┛"), "H": ("╻ ╻", "┣━┫", "╹ ╹"),
    "I": ("╻", "┃", "╹"), "K": ("╻┏ ", "┣┻┓", "╹ ╹"), "L": ("╻  ", "┃  ", "┗━╸"), "M": ("┏┳┓", "┃┃┃", "╹ ╹"),
    "N": ("┏┓╻", "┃┗┫", "╹ ╹"), "O": ("┏━┓", "┃ ┃", "┗━┛"), "P": ("┏━┓", "┣━┛", "╹  "), "R": ("┏━┓", "┣┳┛", "╹┗╸"),
    "S": ("┏━┓", "┗━┓", "┗━┛"), "T": ("╺┳╸", " ┃ ", " ╹ "), "U": ("╻ ╻", "┃ ┃", "┗━┛"), "W": ("╻ ╻", "┃╻┃", "┗┻┛"),
    "Y": ("╻ ╻", "┗┳┛", " ╹ "),
}  # fmt: skip


def big_rows(word: str) -> tuple[str, str, str]:
    """The three rows of `word`, all of one length."""
    letters = [_LETTERS.get(letter, (" ", letter, " ")) for letter in word]
    top, middle, bottom = ("".join(letter[row] for letter in letters) for row in range(3))
    return top, middle, bottom


class BigWord(Widget):
    """A short text in capitals, three rows high."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    BigWord { width: auto; height: 3; text-style: bold; }
    """

    def __init__(self, word: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.word = word

    def render(self) -> Content:
        return Content("\n".join(big_rows(self.word)))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return len(big_rows(self.word)[0])

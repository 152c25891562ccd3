"""Tells the demo to a person: numbered chapters, what was tried, what the system answered."""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.demo.checks import Checks

COLUMNS_MAX: Final = 100
MARGIN: Final = 3
INDENT: Final = 5


class Story:
    """Writes to a console, and keeps the checks.

    What the system answered is shown as text, never read as markup.
    """

    def __init__(self, console: Console, checks: Checks) -> None:
        self.checks = checks
        self._console = console
        self._width = min(console.width, COLUMNS_MAX)
        self._number = 0
        encoding = console.encoding.lower()
        self._marks = ("✓", "✗") if encoding.startswith("utf") else ("ok", "FAILED")

    def opening(self, text: str) -> None:
        """Say what is about to be shown."""
        self._console.print()
        self.tell(text)

    def chapter(self, title: str, text: str) -> None:
        """Begin a chapter with what it is about."""
        self._number += 1
        self._console.print(Text(f"\n{self._number}  {title}", "bold cyan"))
        self.tell(text)

    def tell(self, text: str) -> None:
        """Write a paragraph."""
        self._print(Text(), text)

    def check(self, name: str, *, ok: bool, answer: str) -> None:
        """Record a check: what has to hold, and what the system really answered."""
        self.checks.add(name, ok=ok, detail=answer)
        mark = Text(self._marks[0], "bold green") if ok else Text(self._marks[1], "bold red")
        mark.append(" ")
        self._print(mark, name)
        self._print(Text(" " * len(mark)), answer, "dim" if ok else "red")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; a cell that is too long for its column goes on in the next line."""
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        indented = Padding(table, (1, 0, 1, INDENT), expand=False)
        self._console.print(indented, width=self._width)

    def lines(self, *lines: str) -> None:
        """Write lines that are to be copied: they are never broken."""
        text = "\n".join(" " * INDENT + line for line in lines)
        self._console.print(Text(f"\n{text}\n"), soft_wrap=True)

    def verdict(self, text: str, *, ok: bool) -> None:
        """Write how it all went."""
        self._console.print(Text(f"\n{text}", "bold green" if ok else "bold red"))

    def _print(self, head: Text, text: str, style: str = "") -> None:
        """Write a text below itself, to the right of its head."""
        hang = MARGIN + len(head)
        lines = textwrap.wrap(" ".join(text.split()), self._width - hang, break_on_hyphens=False)
        below = ("\n" + " " * hang).join(lines)
        self._console.print(Text.assemble(" " * MARGIN, head, (below, style)), soft_wrap=True)

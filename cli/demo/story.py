"""Tells the demo to a person: numbered chapters, what was tried, what the system answered."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.demo.checks import Checks

COLUMNS_MAX: Final = 100
INDENT: Final = 4


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

    def chapter(self, title: str, text: str) -> None:
        """Begin a chapter with what it is about."""
        self._number += 1
        self._print()
        self._print(Text(f"{self._number}  {title}", "bold cyan"))
        self.tell(text)

    def tell(self, text: str, style: str = "") -> None:
        """Write a paragraph."""
        self._print(Text(" ".join(text.split()), style), indent=INDENT - 1)

    def check(self, name: str, *, ok: bool, answer: str) -> None:
        """Record a check: what has to hold, and what the system really answered."""
        self.checks.add(name, ok=ok, detail=answer)
        mark = Text(self._marks[0], "bold green") if ok else Text(self._marks[1], "bold red")
        self._print(Text.assemble(mark, " ", name), indent=INDENT - 1)
        self._print(Text(answer, "dim" if ok else "red"), indent=INDENT + 3)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; a cell that is too long for its column goes on in the next line."""
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        self._print(Padding(table, (1, 0)), indent=INDENT)

    def lines(self, *lines: str) -> None:
        """Write lines that are to be copied: they are never broken."""
        self._print()
        for line in lines:
            self._console.print(Text(" " * INDENT + line), soft_wrap=True)
        self._print()

    def verdict(self, text: str, *, ok: bool) -> None:
        """Write how it all went."""
        self._print()
        self._print(Text(text, "bold green" if ok else "bold red"))

    def _print(self, what: Text | Padding | None = None, *, indent: int = 0) -> None:
        if what is None:
            self._console.print()
        else:
            self._console.print(Padding(what, (0, 0, 0, indent)), width=self._width)

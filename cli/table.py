"""The one form of a table, and of a cell: nothing from elsewhere is styled, and ids stay whole."""

from rich.table import Table
from rich.text import Text

from tallystick.plain import plain


def new_table(*columns: str) -> Table:
    """Return a table without rows; what is too wide for a column goes on in the next line."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row; a cell that is no text of our own is made plain."""
    table.add_row(*map(cell_text, cells))


def cell_text(value: object) -> Text:
    """Return a value as text: ours as it is, anything else plain."""
    return value if isinstance(value, Text) else Text(plain(value))

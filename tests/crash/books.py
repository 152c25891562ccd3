"""The provider's books, as the judge of a crash test reads them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.demo.provider.books import Books


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the books: a request that came, or a booking that was made for it.

    ``body`` is the digest of what a request said, and what a booking is about.
    """

    entry: str
    kind: str
    effect_id: str
    fence: int
    key: str | None
    body: str
    reference: str
    at: float


def read_books(path: Path) -> Iterator[Line]:
    """Read what a provider wrote: what was asked of it, and what took place."""
    books = Books(path)
    whole = books.whole(now=float("inf"))
    books.close()
    for request in whole["requests"]:
        if request["fence"] is not None:  # a worker's: who looks something up has none
            kind = request["path"].split("/")[1]
            yield _line("request", kind, request, body=request["digest"])
    for booking in whole["bookings"]:
        if booking["status"] == "booked":
            yield _line("booking", booking["kind"], booking, body=json.dumps(booking["body"]))


def _line(entry: str, kind: str, row: dict[str, Any], *, body: str) -> Line:
    return Line(
        entry=entry,
        kind=kind,
        effect_id=row["effect_id"] or "",
        fence=row["fence"],
        key=row["idempotency_key"],
        body=body,
        reference=row.get("reference", ""),
        at=row["at"],
    )

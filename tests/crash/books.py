"""The provider's books, as the judge of a schedule reads them."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.demo.provider.books import Books


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the books: a request that came, or a booking that was made for it.

    ``body`` is the digest of a request's bytes, and what a booking is about.
    """

    entry: str
    kind: str
    effect_id: str
    fence: int
    key: str | None
    body: str
    reference: str
    at: float


@dataclass(frozen=True, slots=True)
class Account:
    """What was asked of a provider, what took place, and how it failed."""

    lines: list[Line]
    faults: Counter[str] = field(default_factory=Counter[str])


def read_books(path: Path) -> Account:
    """Read what a provider wrote."""
    books = Books(path)
    whole = books.whole(now=float("inf"))
    books.close()
    faults: Counter[str] = Counter()
    lines: list[Line] = []
    for request in whole["requests"]:
        is_order = request["fence"] is not None  # a worker's: who looks something up has none
        if request["fault"]:
            faults[f"{'order' if is_order else 'look-up'} {request['fault']}"] += 1
        if is_order:
            kind = request["path"].split("/")[1]
            lines.append(_line("request", kind, request, body=request["digest"]))
    faults.update(f"webhook {one['fault']}" for one in whole["deliveries"] if one["fault"])
    for booking in whole["bookings"]:
        if booking["status"] == "booked":
            about = json.dumps(booking["body"])
            lines.append(_line("booking", booking["kind"], booking, body=about))
    return Account(lines, faults)


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

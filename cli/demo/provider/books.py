"""The provider's books: every request with its bytes' digest, and everything that it led to.

Whoever asks passes the time, in seconds since 1970.
"""

import json
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

HONOURS_KEYS: Final = {"invoices": True, "transfers": False, "messages": False, "notes": False}
"""What can be booked, and whether the same key again is the same booking."""

MEMORY: Final = ":memory:"

Row = dict[str, Any]
Reply = tuple[int, Row]
"""A status and the body of an answer."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS booking (
    number          INTEGER PRIMARY KEY,
    kind            TEXT NOT NULL,
    effect_id       TEXT,
    fence           INTEGER,
    idempotency_key TEXT,
    body            TEXT NOT NULL,
    outcome         TEXT NOT NULL,
    at              REAL NOT NULL,
    settles_at      REAL NOT NULL,
    cancelled_at    REAL
);
CREATE INDEX IF NOT EXISTS booking_effect ON booking (effect_id);
CREATE INDEX IF NOT EXISTS booking_key ON booking (idempotency_key);
CREATE TABLE IF NOT EXISTS request (
    number          INTEGER PRIMARY KEY,
    method          TEXT NOT NULL,
    path            TEXT NOT NULL,
    effect_id       TEXT,
    fence           INTEGER,
    idempotency_key TEXT,
    digest          TEXT NOT NULL,
    at              REAL NOT NULL,
    fault           TEXT,
    status          INTEGER
);
CREATE TABLE IF NOT EXISTS delivery (
    webhook_id      TEXT NOT NULL,
    fault           TEXT,
    at              REAL NOT NULL,
    status          INTEGER
);
"""
_STATUS_OF: Final = {"pending": 202, "booked": 200, "declined": 402, "cancelled": 410}
"""What a key that is known is answered with. A new booking is 201 instead of 200."""


@dataclass(frozen=True, slots=True)
class Order:
    """A request to book something. Without a key that is honoured, each one is a new booking.

    ``outcome`` is what becomes of it, `booked` or `declined`, after ``settle_seconds``.
    """

    kind: str
    effect_id: str | None
    fence: int | None
    idempotency_key: str | None
    body: Row
    outcome: str = "booked"
    settle_seconds: float = 0


class Books:
    """The books in an SQLite file, which one thread uses; each step is on file before an answer.

    A kill at any moment leaves them right. (Not so a power cut: nothing waits for the disk.)
    """

    def __init__(self, path: Path | str = MEMORY) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # --- bookings -------------------------------------------------------------------------------

    def book(self, order: Order, *, now: float, retention_seconds: float) -> Reply:
        """Book an order, or answer what its key has led to before.

        The same key with another body is refused (422).
        """
        with self._transaction():
            key = order.idempotency_key if HONOURS_KEYS[order.kind] else None
            if key is not None:
                row = self._of_key(key, since=now - retention_seconds)
                if row is not None:
                    return _again(row, order.body, now)
            row = self._insert(order, key, now)
        answer = _shown(row, now)
        return (201 if answer["status"] == "booked" else _STATUS_OF[answer["status"]]), answer

    def cancel(self, key: str, *, now: float, retention_seconds: float) -> Reply:
        """Cancel what is pending under a key; what was booked stays (409).

        A key that is not known yet is cancelled in advance: then nothing will be booked under it.
        """
        with self._transaction():
            row = self._of_key(key, since=now - retention_seconds)
            if row is None:
                row = self._insert(Order("invoices", None, None, key, {}, "cancelled"), key, now)
            elif _status(row, now) == "pending":
                self._connection.execute(
                    "UPDATE booking SET cancelled_at = ? WHERE number = ?", (now, row["number"])
                )
                row = self._of_number(row["number"])
        answer = _shown(row, now)
        return (409 if answer["status"] == "booked" else 200), answer

    def by_effect(self, effect_id: str, *, as_of: float) -> Row | None:
        """Return what was made for an effect as it was at a time, first what is booked, or None."""
        row = self._one(
            "effect_id = ? AND at <= ? ORDER BY outcome = 'booked' DESC, number", effect_id, as_of
        )
        return _shown(row, as_of) if row else None

    def by_key(self, key: str, *, as_of: float, retention_seconds: float) -> Row | None:
        """Return what was made under an idempotency key as it was at a time, or None."""
        row = self._of_key(key, since=as_of - retention_seconds, until=as_of)
        return _shown(row, as_of) if row else None

    def by_reference(self, reference: str, *, as_of: float) -> Row | None:
        """Return what has a name of the provider's own as it was at a time, or None."""
        number = reference.rpartition("-")[2]
        row = self._one("number = ? AND at <= ?", number, as_of)
        shown = _shown(row, as_of) if row else None
        return shown if shown and shown["reference"] == reference else None

    def page(self, after: int, limit: int, *, since: float, as_of: float) -> list[Row]:
        """Return what came since a time and has a higher number, as it was at another, in order."""
        rows = self._all(
            "SELECT * FROM booking WHERE number > ? AND at BETWEEN ? AND ? ORDER BY number LIMIT ?",
            *(after, since, as_of, limit),
        )
        return [_shown(row, as_of) for row in rows]

    # --- the judge ------------------------------------------------------------------------------

    def note(self, request: Row, content: bytes, *, now: float) -> int:
        """Note a request before anything is done for it; return its number."""
        made = self._connection.execute(
            """
            INSERT INTO request (method, path, effect_id, fence, idempotency_key, digest, at)
            VALUES (:method, :path, :effect_id, :fence, :idempotency_key, :digest, :at)
            """,
            request | {"digest": f"sha256:{sha256(content).hexdigest()}", "at": now},
        )
        assert made.lastrowid is not None
        return made.lastrowid

    def note_answer(self, number: int, fault: str | None, status: int | None) -> None:
        """Note what a request met, and the status of its answer: None if it was cut off."""
        self._connection.execute(
            "UPDATE request SET fault = ?, status = ? WHERE number = ?", (fault, status, number)
        )

    def note_delivery(
        self, webhook_id: str, fault: str | None, status: int | None, *, now: float
    ) -> None:
        """Note that a webhook was sent, and the status of its answer: None if there was none."""
        self._connection.execute(
            "INSERT INTO delivery (webhook_id, fault, status, at) VALUES (?, ?, ?, ?)",
            (webhook_id, fault, status, now),
        )

    def whole(self, *, now: float) -> Row:
        """Return every booking, request and delivery, in the order in which they came."""
        return {
            "bookings": [
                _shown(row, now) for row in self._all("SELECT * FROM booking ORDER BY number")
            ],
            "requests": [dict(row) for row in self._all("SELECT * FROM request ORDER BY number")],
            "deliveries": [dict(row) for row in self._all("SELECT * FROM delivery ORDER BY rowid")],
        }

    # --- rows -----------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    def _insert(self, order: Order, key: str | None, now: float) -> sqlite3.Row:
        made = self._connection.execute(
            """
            INSERT INTO booking
                (kind, effect_id, fence, idempotency_key, body, outcome, at, settles_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (
                order.kind,
                order.effect_id,
                order.fence,
                key,
                json.dumps(order.body),
                order.outcome,
                now,
                now + order.settle_seconds,
            ),
        )
        assert made.lastrowid is not None
        return self._of_number(made.lastrowid)

    def _of_key(self, key: str, *, since: float, until: float = float("inf")) -> sqlite3.Row | None:
        return self._one(
            "idempotency_key = ? AND at > ? AND at <= ? ORDER BY number DESC", key, since, until
        )

    def _of_number(self, number: int) -> sqlite3.Row:
        row = self._one("number = ?", number)
        assert row is not None
        return row

    def _one(self, where: str, *values: object) -> sqlite3.Row | None:
        rows = self._all(f"SELECT * FROM booking WHERE {where} LIMIT 1", *values)  # noqa: S608 - ours
        return rows[0] if rows else None

    def _all(self, statement: str, *values: object) -> list[sqlite3.Row]:
        return self._connection.execute(statement, values).fetchall()


def _again(row: sqlite3.Row, body: Row, now: float) -> Reply:
    answer = _shown(row, now)
    is_same = answer["status"] == "cancelled" or answer["body"] == body
    return (_STATUS_OF[answer["status"]], answer) if is_same else (422, {"error": "key_reused"})


def _status(row: sqlite3.Row, as_of: float) -> str:
    if row["cancelled_at"] is not None and row["cancelled_at"] <= as_of:
        return "cancelled"
    return "pending" if as_of < row["settles_at"] else row["outcome"]


def _shown(row: sqlite3.Row, as_of: float) -> Row:
    hidden = ("outcome", "settles_at", "cancelled_at")
    return {
        "reference": f"{row['kind'].removesuffix('s')}-{row['number']:04}",
        "status": _status(row, as_of),
        **{name: row[name] for name in row.keys() if name not in hidden},  # noqa: SIM118 - a Row's values are iterated
        "body": json.loads(row["body"]),
    }

"""A small billing provider that keeps its own books: the judge of what really happened.

    python -m cli.demo.provider --port 0 --books books.sqlite [--delay-ms 500]

It prints one line of JSON, `{"port": ..., "url": ...}`, once it listens on the loopback.

    POST /invoices                 books once for an `Idempotency-Key`, which has to be sent
    POST /transfers, /messages, /notes    book every request
    GET  /effects/{effect_id}      the booking that was made under an `Effect-Id`, or 404
    GET  /keys/{idempotency_key}   the booking that was made under a key, or 404
    GET  /books                    every booking, and every request to make one
    GET  /customers/{customer_id}  changes nothing

A booking is in the file before it is answered, so that a kill at any moment leaves the books right.
"""

import argparse
import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, Final, cast
from urllib.parse import unquote

ADDRESS: Final = "127.0.0.1"
BODY_BYTES_MAX: Final = 1024 * 1024
LOCK_SECONDS_MAX: Final = 10

HONOURS_KEYS: Final = {"invoices": True, "transfers": False, "messages": False, "notes": False}
"""What can be booked, and whether the same key again is the same booking."""

Row = dict[str, Any]

_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS booking (
        number          INTEGER PRIMARY KEY,
        kind            TEXT NOT NULL,
        effect_id       TEXT,
        idempotency_key TEXT,
        body            TEXT NOT NULL,
        booked_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    )
    """,
    "CREATE INDEX IF NOT EXISTS booking_effect ON booking (effect_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS booking_key ON booking (kind, idempotency_key)",
    """
    CREATE TABLE IF NOT EXISTS request (
        number    INTEGER PRIMARY KEY,
        kind      TEXT NOT NULL,
        effect_id TEXT,
        status    INTEGER NOT NULL
    )
    """,
)


@dataclass(frozen=True, slots=True)
class Order:
    """A request to book something. Without a key that is honoured, each one is a new booking."""

    kind: str
    effect_id: str | None
    idempotency_key: str | None
    body: Row


class Books:
    """The provider's bookings, in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._transaction() as connection:
            for statement in _TABLES:
                connection.execute(statement)

    def book(self, order: Order) -> tuple[int, Row]:
        """Write a booking, and the request for it, in one commit; return a status and the answer.

        The same key with the same body answers the booking that is there (200), and with another
        body is refused (409).
        """
        with self._transaction() as connection:
            status, answer = _decide(connection, order)
            connection.execute(
                "INSERT INTO request (kind, effect_id, status) VALUES (?, ?, ?)",
                (order.kind, order.effect_id, status),
            )
            return status, answer

    def by_effect(self, effect_id: str) -> Row | None:
        """Return the first booking that was made for an effect, or None."""
        with self._transaction() as connection:
            return _booking(connection, "effect_id = ?", effect_id)

    def by_key(self, key: str) -> Row | None:
        """Return the booking that was made under an idempotency key, or None."""
        with self._transaction() as connection:
            return _booking(connection, "idempotency_key = ?", key)

    def whole(self) -> Row:
        """Return every booking and every request, in the order in which they came."""
        with self._transaction() as connection:
            bookings = connection.execute("SELECT * FROM booking ORDER BY number").fetchall()
            requests = connection.execute("SELECT * FROM request ORDER BY number").fetchall()
        return {
            "bookings": [_shown(row) for row in bookings],
            "requests": [dict(row) for row in requests],
        }

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=LOCK_SECONDS_MAX, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()


def _decide(connection: sqlite3.Connection, order: Order) -> tuple[int, Row]:
    key = order.idempotency_key if HONOURS_KEYS[order.kind] else None
    if HONOURS_KEYS[order.kind]:
        if not key:
            return 400, {"error": "key_missing"}
        found = _booking(connection, "kind = ? AND idempotency_key = ?", order.kind, key)
        if found is not None:
            is_same = found["body"] == order.body
            return (200, found) if is_same else (409, {"error": "key_reused"})
    made = connection.execute(
        "INSERT INTO booking (kind, effect_id, idempotency_key, body) VALUES (?, ?, ?, ?)",
        (order.kind, order.effect_id, key, json.dumps(order.body)),
    )
    booked = _booking(connection, "number = ?", made.lastrowid)
    assert booked is not None
    return 201, booked


def _booking(connection: sqlite3.Connection, where: str, *values: object) -> Row | None:
    statement = f"SELECT * FROM booking WHERE {where} ORDER BY number LIMIT 1"  # noqa: S608 - ours
    row = connection.execute(statement, values).fetchone()
    return _shown(row) if row else None


def _shown(row: sqlite3.Row) -> Row:
    reference = f"{row['kind'].removesuffix('s')}-{row['number']:04}"
    return {
        "reference": reference,
        "status": "booked",
        **dict(row),
        "body": json.loads(row["body"]),
    }


class Provider(ThreadingTCPServer):
    """The books behind HTTP, a thread a connection. With port 0 the system chooses a free one."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, books: Books, *, delay_seconds: float = 0) -> None:
        super().__init__((ADDRESS, port), _Desk)
        self.books = books
        self.delay_seconds = delay_seconds

    @property
    def port(self) -> int:
        """The port that this listens on."""
        return self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://{ADDRESS}:{self.port}"


class _Desk(BaseHTTPRequestHandler):
    """Takes one connection's requests."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    wbufsize = -1  # headers and body leave together
    server: Provider  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        """Look something up."""
        books = self.server.books
        match self.path.lstrip("/").split("/"):
            case ["effects", effect_id]:
                self._found(books.by_effect(unquote(effect_id)))
            case ["keys", key]:
                self._found(books.by_key(unquote(key)))
            case ["customers", customer_id]:
                name = f"Customer {unquote(customer_id)}"
                self._answer(200, {"customer_id": unquote(customer_id), "name": name})
            case ["books"]:
                self._answer(200, books.whole())
            case _:
                self._no_such_route()

    def do_POST(self) -> None:
        """Book something, and answer once it stands in the books."""
        body, kind = self._body(), self.path.removeprefix("/")
        if kind not in HONOURS_KEYS:
            self._no_such_route()
        elif body is None:
            self._answer(400, {"error": "malformed"})
        else:
            effect_id, key = self.headers.get("Effect-Id"), self.headers.get("Idempotency-Key")
            status, answer = self.server.books.book(Order(kind, effect_id, key, body))
            time.sleep(self.server.delay_seconds)
            self._answer(status, answer)

    def _body(self) -> Row | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return None
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError:
            return None
        return cast("Row", body) if isinstance(body, dict) else None

    def _found(self, booking: Row | None) -> None:
        self._answer(*((404, {"error": "not_found"}) if booking is None else (200, booking)))

    def _no_such_route(self) -> None:
        # Never 404: that says "not booked" to whoever looks an effect up.
        self._answer(400, {"error": "no_such_route"})

    def _answer(self, status: int, value: Row) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(
        prog="python -m cli.demo.provider",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--books", type=Path, required=True, help="the file that the books are in")
    parser.add_argument("--delay-ms", type=int, default=0, help="between a booking and its answer")
    given = parser.parse_args()
    books = Books(given.books)
    with Provider(given.port, books, delay_seconds=given.delay_ms / 1000) as provider:
        print(json.dumps({"port": provider.port, "url": provider.url}), flush=True)  # noqa: T201
        provider.serve_forever()


if __name__ == "__main__":
    main()

"""The judge: a provider that keeps its own books, and is sometimes slow, down, or cut off.

    python -m tests.crash.provider BOOKS SEED

It prints its port once it listens on the loopback.

    POST /{kind}               books; `kind` is the effect class of the tool, in lower case
    GET  /effects/{effect_id}  the booking that was made for an effect, or 404: read-after-write

Every request is in the books before it is acted on, and every booking before it is answered, each
on the disk. `idempotent` books once for an `Idempotency-Key`, `pure` never, the others every time.
The trouble that a request is to meet stands in its body.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from socketserver import ThreadingTCPServer
from threading import Lock
from typing import Any

from tests.crash.scenario import BOOKS_LATE_SECONDS_MAX


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the books: a request that came, or a booking that was made for it."""

    entry: str
    kind: str
    effect_id: str
    fence: int
    key: str | None
    body: str
    reference: str
    at: float


class Books:
    """Lines in a file, in the order in which things happened."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._lock = Lock()
        self._lines: list[Line] = []

    def note(self, request: Line) -> int:
        """Note a request; return how many there were for its effect, with this one."""
        with self._lock:
            self._write(request)
            return sum(
                (one.entry, one.effect_id) == ("request", request.effect_id) for one in self._lines
            )

    def book(self, request: Line) -> tuple[int, Line]:
        """Book what a request asks for; return the status and the booking."""
        with self._lock:
            made = self._made(lambda one: request.kind == "idempotent" and one.key == request.key)
            if made is not None:
                return (200 if made.body == request.body else 409), made
            reference = f"booking-{len(self._lines)}"
            booking = Line(**asdict(request) | _entry("booking", reference))
            self._write(booking)
            return 201, booking

    def booking_of(self, effect_id: str) -> Line | None:
        with self._lock:
            return self._made(lambda one: one.effect_id == effect_id)

    def _made(self, matches: Any) -> Line | None:
        bookings = (one for one in self._lines if one.entry == "booking" and matches(one))
        return next(bookings, None)

    def _write(self, line: Line) -> None:
        os.write(self._file, json.dumps(asdict(line)).encode() + b"\n")
        os.fsync(self._file)
        self._lines.append(line)


def _entry(entry: str, reference: str = "") -> dict[str, Any]:
    return {"entry": entry, "reference": reference, "at": time.time()}


def read_books(path: Path) -> Iterator[Line]:
    """Read what a provider wrote."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield Line(**json.loads(line))


class Provider(ThreadingTCPServer):
    """The books behind HTTP, a thread a connection, on a free port."""

    daemon_threads = True

    def __init__(self, books: Books, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Desk)
        self.books = books
        self.seed = seed


class _Desk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Provider  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        booking = self.server.books.booking_of(self.path.removeprefix("/effects/"))
        if booking is None:
            self._answer(404, {"error": "not_found"})
        else:
            self._answer(200, _shown(booking))

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        content = self.rfile.read(length)
        if len(content) < length:
            # Its sender was killed halfway: what is not whole is no request (RFC 9112, section 8).
            self.close_connection = True
            return
        text = content.decode()
        request = Line(
            kind=self.path.removeprefix("/"),
            effect_id=self.headers["Effect-Id"],
            fence=int(self.headers["Fence"]),
            key=self.headers["Idempotency-Key"],
            body=text,
            **_entry("request"),
        )
        earlier = self.server.books.note(request) - 1
        trouble, item = json.loads(text)["trouble"], json.loads(text)["item"]
        if trouble == "declines":
            self._answer(422, {"error": "declined"})
        elif trouble == "is_down_at_first" and not earlier:
            self._answer(503, {"error": "down"})
        elif request.kind == "pure":
            self._answer(200, {"reference": "none"})
        else:
            self._book(request, trouble, Random(f"{self.server.seed}:{item}:{earlier}"))

    def _book(self, request: Line, trouble: str, random: Random) -> None:
        if trouble == "books_late":
            time.sleep(random.uniform(0.1, BOOKS_LATE_SECONDS_MAX))
        status, booking = self.server.books.book(request)
        if trouble == "answers_late":
            time.sleep(random.uniform(0.2, 2.0))
        if trouble == "loses_the_answer":
            self.close_connection = True
        else:
            self._answer(status, _shown(booking))

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _shown(booking: Line) -> dict[str, Any]:
    return {
        "status": "booked",
        "effect_id": booking.effect_id,
        "reference": booking.reference,
        "body": json.loads(booking.body),
    }


if __name__ == "__main__":
    with Provider(Books(Path(sys.argv[1])), int(sys.argv[2])) as provider:
        print(provider.server_address[1], flush=True)
        provider.serve_forever()

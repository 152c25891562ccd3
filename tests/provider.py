"""A look-up on loopback that answers what a test tells it to, whatever that is.

The provider that has rules of its own is `cli.demo.provider`.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Provider:
    """Answers ``GET /effects/{effect_id}`` from its books, and notes what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.heads: list[dict[str, str]] = []
        self.headers = b""
        self.books: dict[str, dict[str, object]] = {}
        self.status: int | None = None
        self.raw: bytes | None = None

    def book(self, effect_id: str, *, status: str = "applied", **facts: object) -> None:
        """Note that an effect has been applied, or is in another state."""
        number = len(self.books) + 1
        self.books[effect_id] = {
            "id": f"inv_{number}",
            "effect_id": effect_id,
            "status": status,
            **facts,
        }

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return a status and a body for a path."""
        self.asked.append(path)
        if self.raw is not None:
            return self.status or 200, self.raw
        if self.status is not None:
            return self.status, b"{}"
        found = self.books.get(path.removeprefix("/effects/"))
        return (200, json.dumps(found).encode()) if found else (404, b"{}")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").strip().split("\r\n")[1:]
            self.heads.append({k.lower(): v for k, v in (line.split(": ", 1) for line in lines)})
            status, body = self.answer(head.split(b" ")[1].decode())
            writer.write(
                b"HTTP/1.1 %d OK\r\n%bContent-Length: %d\r\nConnection: close\r\n\r\n"
                % (status, self.headers, len(body))
                + body
            )
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def listening(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[Provider]:
    """Run a provider on a free port of loopback."""
    provider = Provider()
    server = await asyncio.start_server(provider._serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        provider.port = server.sockets[0].getsockname()[1]
        yield provider

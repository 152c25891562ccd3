"""What a connection may cost, below HTTP: uvicorn bounds neither a request's head nor its time."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX: Final = 64 * 1024
SECONDS_MAX: Final = 10.0


def bounded_protocol(
    *, message_bytes_max: int, seconds_max: float = SECONDS_MAX
) -> type[asyncio.Protocol]:
    """Return a protocol for uvicorn that closes connections whose requests go beyond its limits.

    A head has `HEAD_BYTES_MAX` bytes and ``seconds_max`` to be complete in, a whole request
    ``message_bytes_max`` bytes, and what is left of one that was answered early ``seconds_max``
    more. In between it is for the application to say how long a body may take.
    """
    limits = {"message_bytes_max": message_bytes_max, "seconds_max": seconds_max}
    return type("BoundedConnection", (_BoundedConnection,), limits)


class _BoundedConnection(HttpToolsProtocol):
    message_bytes_max: int
    seconds_max: float

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        self._bytes = 0
        self._is_in_head = True
        self._closing: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._close_late()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._is_in_head:
            self._close_late()
        super().data_received(data)
        if self._bytes > (HEAD_BYTES_MAX if self._is_in_head else self.message_bytes_max):
            self.transport.close()

    def on_message_begin(self) -> None:
        self._close_late()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._go_on()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._bytes = 0
        self._is_in_head = True
        self._go_on()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.cycle.more_body:
            self._close_late()
        super().on_response_complete()

    def _close_late(self) -> None:
        """Close the connection when the time is over that runs already, or else begins now."""
        if self._closing is None:
            self._closing = self.loop.call_later(self.seconds_max, self.transport.close)

    def _go_on(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

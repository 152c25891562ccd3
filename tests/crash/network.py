"""The way to the servers: either will do, and what goes over it may be lost or double."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Lock
from typing import Final

import httpx

FAULTS: Final = {"loses_the_request": 0.02, "loses_the_answer": 0.04, "repeats": 0.08}
"""What happens to how many of the requests."""
IN_FLIGHT_MAX: Final = 16


class Network(httpx.BaseTransport):
    """Sends to one server until that does not answer, and then to the next.

    A request that is repeated goes to two servers at once, as by a proxy that has lost patience.
    What it did, it tells to ``note``.
    """

    def __init__(self, urls: Sequence[str], random: Random, note: Callable[[str], None]) -> None:
        self._urls = [httpx.URL(url) for url in urls]
        self._random = random
        self._note = note
        self._lock = Lock()
        self._current = random.randrange(len(urls))
        self._inner = httpx.HTTPTransport()
        self._copies = ThreadPoolExecutor(IN_FLIGHT_MAX)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fault, current = self._draw()
        if fault == "loses_the_request":
            raise httpx.ConnectError("lost", request=request)
        if fault == "repeats":
            self._copies.submit(self._send, request, current + 1)
        try:
            response = self._send(request, current)
        except httpx.TransportError:
            with self._lock:
                self._current = current + 1
            raise
        if fault == "loses_the_answer":
            raise httpx.ReadError("lost", request=request)
        return response

    def close(self) -> None:
        self._copies.shutdown()
        self._inner.close()

    def _draw(self) -> tuple[str | None, int]:
        with self._lock:
            drawn = self._random.random()
            current = self._current
        for fault, share in FAULTS.items():
            if drawn < share:
                self._note(fault)
                return fault, current
            drawn -= share
        return None, current

    def _send(self, request: httpx.Request, index: int) -> httpx.Response:
        url = self._urls[index % len(self._urls)]
        there = httpx.Request(
            request.method,
            request.url.copy_with(host=url.host, port=url.port),
            headers=request.headers,
            content=request.read(),
            extensions=request.extensions,
        )
        response = self._inner.handle_request(there)
        response.read()
        return response

"""The two shells around the pure part: they send, wait, and keep the process's heartbeat going.

Nothing is decided here. A script (`tallystick._conversation`) says what to send and makes of the
answer what it will; `Wire` blocks for it and `AsyncWire` awaits.
"""

import asyncio
import os
import platform
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import Final, TypeVar

import httpx

from tallystick._answers import Answer
from tallystick._conversation import Heard, Script, Setting, Step, advance
from tallystick._requests import Endpoint, heartbeat_request

T = TypeVar("T")

HEARTBEAT_SECONDS: Final = 5.0

monotonic: Callable[[], float] = time.monotonic
if sys.platform == "linux":
    # A lease also runs while the machine is suspended, and so does this monotonic clock.
    monotonic = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def draw_id() -> str:
    """Draw a worker's id or a nonce. The library stands below the service's own source of ids."""
    return str(uuid.uuid4())  # noqa: TID251


class _Process:
    """What this process is to a registry: one worker, and so at most one heartbeat."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Become another worker: a forked child has its parent's memory, not its threads."""
        self.worker_id = draw_id()
        self._beating: set[tuple[Endpoint, str]] = set()
        self._lock = Lock()

    def claim_heartbeat(self, endpoint: Endpoint, worker_id: str) -> bool:
        """Whether the caller is to keep the heartbeat going, since nobody else does."""
        with self._lock:
            is_first = (endpoint, worker_id) not in self._beating
            self._beating.add((endpoint, worker_id))
            return is_first

    def release_heartbeat(self, endpoint: Endpoint, worker_id: str) -> None:
        """Let another client of the process keep the heartbeat going."""
        with self._lock:
            self._beating.discard((endpoint, worker_id))


PROCESS: Final = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.renew)


class Wire:
    """Sends what a script asks for, and blocks until it is answered."""

    def __init__(
        self, endpoint: Endpoint, setting: Setting, transport: httpx.BaseTransport | None
    ) -> None:
        self._endpoint = endpoint
        self._setting = setting
        self._http = httpx.Client(
            headers=_headers(endpoint),
            timeout=setting.timeout_seconds,
            transport=transport,
            trust_env=not _is_loopback(endpoint.url),
        )
        self._closed = Event()
        self._beating_as: str | None = None

    def run(self, script: Script[T]) -> T:
        """Run a script to its end and return its value."""
        progress = advance(script, None)
        while isinstance(progress, Step):
            progress = advance(script, self._hear(progress))
        return progress.value

    def beat(self, worker_id: str) -> None:
        """Start the worker's heartbeat, unless this process keeps it going already."""
        if PROCESS.claim_heartbeat(self._endpoint, worker_id):
            self._beating_as = worker_id
            # A daemon: a heart that still beats keeps no process from ending.
            Thread(
                target=self._keep_beating,
                args=[worker_id],
                name="tallystick-heartbeat",
                daemon=True,
            ).start()

    def close(self) -> None:
        """Stop the heartbeat, if this client keeps it, and close the connections."""
        self._closed.set()
        if self._beating_as is not None:
            PROCESS.release_heartbeat(self._endpoint, self._beating_as)
        self._http.close()

    def _hear(self, step: Step) -> Heard:
        time.sleep(step.pause_seconds)
        sent_at = self._setting.clock()
        try:
            response = self._http.request(
                step.request.method,
                self._endpoint.url + step.request.path,
                content=step.request.content(),
            )
        except httpx.RequestError as fault:
            return Heard(sent_at, self._setting.clock(), None, _fault(fault))
        return Heard(sent_at, self._setting.clock(), _answer(response))

    def _keep_beating(self, worker_id: str) -> None:
        step = _heartbeat(worker_id)
        while not self._closed.is_set():
            with suppress(Exception):  # a beat that fails is a beat left out, and nothing else
                self._hear(step)
            self._closed.wait(HEARTBEAT_SECONDS)


class AsyncWire:
    """Sends what a script asks for, and awaits the answer."""

    def __init__(
        self, endpoint: Endpoint, setting: Setting, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._endpoint = endpoint
        self._setting = setting
        self._http = httpx.AsyncClient(
            headers=_headers(endpoint),
            timeout=setting.timeout_seconds,
            transport=transport,
            trust_env=not _is_loopback(endpoint.url),
        )
        self._heart: asyncio.Task[None] | None = None

    async def run(self, script: Script[T]) -> T:
        """Run a script to its end and return its value."""
        progress = advance(script, None)
        while isinstance(progress, Step):
            progress = advance(script, await self._hear(progress))
        return progress.value

    def beat(self, worker_id: str) -> None:
        """Start the worker's heartbeat, unless this process keeps it going already."""
        if PROCESS.claim_heartbeat(self._endpoint, worker_id):
            self._heart = asyncio.create_task(self._keep_beating(worker_id))
            # However the task ends, and be it with its event loop, another one may begin.
            self._heart.add_done_callback(
                lambda _: PROCESS.release_heartbeat(self._endpoint, worker_id)
            )

    async def close(self) -> None:
        """Stop the heartbeat, if this client keeps it, and close the connections."""
        if self._heart is not None and not self._heart.done():
            self._heart.cancel()
            await asyncio.wait({self._heart})
        await self._http.aclose()

    async def _hear(self, step: Step) -> Heard:
        await asyncio.sleep(step.pause_seconds)
        sent_at = self._setting.clock()
        try:
            response = await self._http.request(
                step.request.method,
                self._endpoint.url + step.request.path,
                content=step.request.content(),
            )
        except httpx.RequestError as fault:
            return Heard(sent_at, self._setting.clock(), None, _fault(fault))
        return Heard(sent_at, self._setting.clock(), _answer(response))

    async def _keep_beating(self, worker_id: str) -> None:
        step = _heartbeat(worker_id)
        while True:
            with suppress(Exception):  # a beat that fails is a beat left out, and nothing else
                await self._hear(step)
            await asyncio.sleep(HEARTBEAT_SECONDS)


def _is_loopback(url: str) -> bool:
    # A proxy of the environment has no business with this machine's own addresses, or the token.
    host = httpx.URL(url).host
    return host in ("localhost", "::1") or host.startswith("127.")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    return {
        "Accept": "application/json, application/problem+json",
        "Authorization": f"Bearer {endpoint.token}",
        "Content-Type": "application/json",
        "User-Agent": "tallystick",
    }


def _answer(response: httpx.Response) -> Answer:
    return Answer(
        status=response.status_code,
        content_type=response.headers.get("Content-Type", ""),
        body=response.content,
        retry_after=response.headers.get("Retry-After", ""),
    )


def _fault(error: httpx.RequestError) -> str:
    return f"{type(error).__name__}: {error}"


def _heartbeat(worker_id: str) -> Step:
    return Step(heartbeat_request(worker_id, f"{platform.node()}:{os.getpid()}"))

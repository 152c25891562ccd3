"""The first thing that a request meets: its limits, its token, and the count of its answer."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from access.token import bearer_token, token_hash
from kernel.scope import Caller, Scope
from ledger.state import OPEN, State
from ledger.store import Standing
from reconciler.store import Reach
from server.limits import Buckets, Limits, origin_of
from server.problems import problem
from tallystick.canonical import Json
from tallystick.errors import (
    Forbidden,
    InvalidRequest,
    Outage,
    RateLimited,
    Refusal,
    RegistryUnavailable,
    TooLarge,
    TooSlow,
    Unauthenticated,
)

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
_OPEN_PREFIX: Final = "/docs/static/"
_SIGNED_PREFIX: Final = "/v1/webhooks/"
_CLIENT_CLOSED_REQUEST: Final = 499  # no status of HTTP's: nginx counts such requests under it
_UNAUTHENTICATED: Final = 401
_IN_DOUBT: Final = frozenset({State.UNKNOWN, State.RECONCILING})
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Metrics:
    """What ``/metrics`` tells: answers by route, how long they took, and effects that are open."""

    def __init__(self) -> None:
        """Make a registry of our own, so that two applications in one process do not meet."""
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._answers = Counter(
            "tallystick_http_answers",
            "Answers by route and status.",
            labels,
            registry=self.registry,
        )
        self._seconds = Histogram(
            "tallystick_http_seconds",
            "Seconds to the answer, by route.",
            labels[:2],
            registry=self.registry,
        )
        self._open = Gauge(
            "tallystick_effects_open",
            "Open effects by state, of all tenants. QUARANTINED ones wait for a person.",
            ("state",),
            registry=self.registry,
        )
        self._unknown = Gauge(
            "tallystick_effects_unknown_since_seconds",
            "Since when the effect is in doubt that is so for the longest, in Unix time, or 0.",
            registry=self.registry,
        )

        self._listed = Gauge(
            "tallystick_listed_items",
            "What providers listed so far, of all tenants: all items, orphans, and what is passed"
            " over.",
            ("what",),
            registry=self.registry,
        )
        self._read_until = Gauge(
            "tallystick_listings_read_until_seconds",
            "Until when the listing has been read that is the furthest behind, in Unix time, or 0.",
            registry=self.registry,
        )

    def show_listings(self, reach: Reach) -> None:
        """Set how far the listings of providers have been read, as it was just read."""
        for what in ("listed", "orphans", "ignored"):
            self._listed.labels(what).set(getattr(reach, what))
        self._read_until.set(reach.until.timestamp() if reach.until else 0)

    def show_open(self, standings: Sequence[Standing]) -> None:
        """Set how many effects are open, as it was just read."""
        many = {standing.state: standing.many for standing in standings}
        for state in OPEN:
            self._open.labels(state).set(many.get(state, 0))
        in_doubt = [one.unknown_since for one in standings if one.state in _IN_DOUBT]
        times = [moment.timestamp() for moment in in_doubt if moment is not None]
        self._unknown.set(min(times, default=0))

    def count(self, scope: AsgiScope, status: int, seconds: float) -> None:
        """Count one answer under its route's template, so that ids make no labels."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._answers.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)


class Gatehouse:
    """ASGI middleware that refuses what is too large, too slow or too much, or has no token.

    It does so before any route is looked for.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        """Wrap an application whose ``state`` holds the service's parts once it runs."""
        self._app = app
        self._limits = limits
        self._requests = Buckets(limits.requests, time.monotonic)
        self._guesses = Buckets(limits.guesses, time.monotonic)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.monotonic(), 500
        limit = asyncio.timeout(self._limits.request_seconds_max)

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        async def in_time(message: Message) -> None:
            limit.reschedule(None)  # an answer that has begun may be long, and read slowly
            await counted(message)

        try:
            async with limit:
                await self._pass(scope, self._bounded(receive), in_time)
        except (Refusal, Outage) as error:
            await problem(error)(scope, receive, counted)
        except TimeoutError:
            if not limit.expired():
                raise
            seconds = self._limits.request_seconds_max
            late = RegistryUnavailable(f"The answer took longer than {seconds:g} seconds.")
            await problem(late)(scope, receive, counted)
        except ClientDisconnect:
            # Nobody is left to be answered, and nothing was begun.
            status = _CLIENT_CLOSED_REQUEST
        finally:
            scope["app"].state.metrics.count(scope, status, time.monotonic() - begun)

    async def _pass(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        state = scope["app"].state
        _check_address(scope)
        if scope["path"].startswith(_SIGNED_PREFIX):
            send = self._watched(scope, send)
        elif not _is_open(scope["path"]):
            caller = await self._admit(scope)
            scope.setdefault("state", {})["scope"] = Scope(
                caller=caller,
                transaction=state.database.transact,
                keys=state.keys,
                lease_seconds_max=state.lease_seconds_max,
                approval_seconds=state.approval_seconds,
            )
        await self._app(scope, receive, send)

    async def _admit(self, scope: AsgiScope) -> Caller:
        """Return who asks. Raises RateLimited, and what the authenticator raises.

        A token that proved itself lately is never held up by what others guess from its address.
        """
        authorization = Request(scope).headers.get("authorization")
        key = token_hash(bearer_token(authorization))
        origin = _origin(scope)
        if key not in self._requests:
            _check(self._guesses, origin, "tokens that are not known here")
        try:
            caller: Caller = await scope["app"].state.authenticator.caller(authorization)
        except (Unauthenticated, Forbidden):
            # It proves itself no more, or opens nothing: its next try is a guess as well.
            self._requests.forget(key)
            self._guesses.take(origin)
            raise
        _check(self._requests, key, "requests with this token")
        self._requests.take(key)
        return caller

    def _watched(self, scope: AsgiScope, send: Send) -> Send:
        """Take each signature that is refused for a guess. Raises RateLimited after too many."""
        origin = _origin(scope)
        _check(self._guesses, origin, "signatures that are not known here")

        async def watched(message: Message) -> None:
            if message.get("status") == _UNAUTHENTICATED:
                self._guesses.take(origin)
            await send(message)

        return watched

    def _bounded(self, receive: Receive) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
        read, seconds = 0, self._limits.body_seconds_max
        until: float | None = asyncio.get_running_loop().time() + seconds

        async def bounded() -> Message:
            nonlocal read, until
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise TooSlow(f"A body arrives within {seconds:g} seconds.") from None
            if not message.get("more_body"):
                until = None  # what may come now is that the client hangs up
            read += len(message.get("body", b""))
            if read > self._limits.request_bytes_max:
                raise TooLarge(f"A request has at most {self._limits.request_bytes_max} bytes.")
            return message

        return bounded


def _check(buckets: Buckets, key: object, what: str) -> None:
    wait = buckets.wait(key)
    if wait:
        facts: dict[str, Json] = {"retry_after_seconds": math.ceil(wait)}
        raise RateLimited(f"There were too many {what} in too short a time.", facts=facts)


def _check_address(scope: AsgiScope) -> None:
    # No name here holds it, and the database refuses to compare anything with it.
    if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        raise InvalidRequest("An address holds no NUL character.")


def _origin(scope: AsgiScope) -> str:
    return origin_of(scope["client"][0]) if scope.get("client") else ""


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(_OPEN_PREFIX)

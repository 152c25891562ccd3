"""The first thing that a request meets: its size, its token, and the count of its answer."""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from uuid import UUID

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from kernel.keys import KeyRing
from kernel.scope import Caller, Connection, Scope
from server.bootstrap import token_hash
from server.database import Database
from server.problems import problem
from tallystick.errors import InvalidRequest, Outage, Refusal, TooLarge, Unauthenticated

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
_OPEN_PREFIX: Final = "/docs/static/"
_CLIENT_CLOSED_REQUEST: Final = 499  # no status of HTTP's: nginx counts such requests under it
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_TOKEN_SECONDS: Final = 5.0
_TOKENS_MAX: Final = 10_000


class Authenticator:
    """Turns a bearer token into a caller. What a token said is believed for a few seconds."""

    def __init__(self, database: Database) -> None:
        """Take the database that knows the tokens."""
        self._database = database
        self._known: dict[bytes, tuple[float, Caller]] = {}

    async def caller(self, authorization: str | None) -> Caller:
        """Return who asks. Raises Unauthenticated, with the same words whatever is wrong."""
        scheme, _, rest = (authorization or "").partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated("Send a token: Authorization: Bearer <token>.")
        presented = token_hash(token)
        held = self._known.get(presented)
        if held is not None and time.monotonic() < held[0]:
            return held[1]

        async def ask(connection: Connection) -> Any:  # noqa: ANN401 - a row
            cursor = await connection.execute(
                "SELECT tenant_id, tenant, principal, role FROM authenticate(%s)", (presented,)
            )
            return await cursor.fetchone()

        row = await self._database.transact(None, ask)
        if row is None:
            raise Unauthenticated("The token is not known here, or was revoked.")
        tenant_id: UUID = row[0]
        caller = Caller(tenant_id, row[1], row[2], row[3])
        if len(self._known) >= _TOKENS_MAX:
            self._known.clear()
        self._known[presented] = (time.monotonic() + _TOKEN_SECONDS, caller)
        return caller


class Metrics:
    """What ``/metrics`` tells: answers by route and status, and how long they took."""

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

    def count(self, scope: AsgiScope, status: int, seconds: float) -> None:
        """Count one answer under its route's template, so that ids make no labels."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._answers.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)


class Gatehouse:
    """ASGI middleware that refuses what is too large or has no token.

    It does so before any route is looked for.
    """

    def __init__(self, app: ASGIApp, *, request_bytes_max: int) -> None:
        """Wrap an application whose ``state`` holds the service's parts once it runs."""
        self._app = app
        self._bytes_max = request_bytes_max

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope["app"].state
        begun, status = time.monotonic(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            _check_address(scope)
            if not _is_open(scope["path"]):
                caller = await state.authenticator.caller(
                    Request(scope).headers.get("authorization")
                )
                _attach(scope, caller, state.database, state.keys, state.lease_seconds_max)
            await self._app(scope, self._bounded(receive), counted)
        except (Refusal, Outage) as error:
            await problem(error)(scope, receive, counted)
        except ClientDisconnect:
            # Nobody is left to be answered, and nothing was begun.
            status = _CLIENT_CLOSED_REQUEST
        finally:
            state.metrics.count(scope, status, time.monotonic() - begun)

    def _bounded(self, receive: Receive) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._bytes_max:
                raise TooLarge(f"A request has at most {self._bytes_max} bytes.")
            return message

        return bounded


def _check_address(scope: AsgiScope) -> None:
    # No name here holds it, and the database refuses to compare anything with it.
    if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
        raise InvalidRequest("An address holds no NUL character.")


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(_OPEN_PREFIX)


def _attach(
    scope: AsgiScope, caller: Caller, database: Database, keys: KeyRing, lease_seconds_max: float
) -> None:
    scope.setdefault("state", {})["scope"] = Scope(
        caller, database.transact, keys, lease_seconds_max
    )

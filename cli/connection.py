"""The way to the service: a server at a URL, or the service itself inside this process.

A command sees one `Api` and cannot tell which of the two it is.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, cast
from urllib.parse import quote, urlsplit

import typer

from tallystick.errors import (
    Outage,
    Refusal,
    RegistryUnavailable,
    Unauthenticated,
    error_for,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    import httpx

    from server.settings import Settings

JsonObject: TypeAlias = dict[str, Any]

REQUEST_SECONDS_MAX: Final = 60.0
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the service is. Without a URL it runs inside this process, on the data in `home`."""

    url: str | None
    home: Path | None

    def settings(self) -> Settings:
        """Return the service's settings on this machine.

        Raises:
            typer.BadParameter: A variable of the environment has a value that cannot be one.
        """
        from pydantic import ValidationError

        from server.settings import Settings

        try:
            settings = Settings.read()
        except ValidationError as fault:
            # Never the value: it may be a secret.
            first = fault.errors()[0]
            name = "_".join(map(str, first["loc"])).upper()
            raise typer.BadParameter(f"TALLYSTICK_{name}: {first['msg']}.") from None
        _check_database_url(settings.database_url)
        return settings if self.home is None else settings.model_copy(update={"home": self.home})


class Api:
    """The HTTP API: a call returns the parsed answer, or raises a class of `tallystick.errors`.

    Attributes:
        http: What the calls go through; its URL and token are those of the service.
    """

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, *path: str, **query: str | int | bool | None) -> JsonObject:
        """Read what is at `path`, whose segments are given unquoted; a `None` is not asked for."""
        asked = {name: value for name, value in query.items() if value is not None}
        return await self._answer(self.http.build_request("GET", _join(path), params=asked))

    async def post(self, *path: str, body: Mapping[str, object]) -> JsonObject:
        """Send `body` to `path`, whose segments are given unquoted; a `None` is not sent."""
        sent = {name: value for name, value in body.items() if value is not None}
        return await self._answer(self.http.build_request("POST", _join(path), json=sent))

    async def put(self, *path: str, body: Mapping[str, object]) -> JsonObject:
        """Put `body` at `path`, whose segments are given unquoted."""
        return await self._answer(self.http.build_request("PUT", _join(path), json=body))

    async def delete(self, *path: str, **query: str) -> None:
        """Delete what is at `path`, whose segments are given unquoted."""
        await self._sent(self.http.build_request("DELETE", _join(path), params=query))

    async def download(self, *path: str, into: BinaryIO) -> None:
        """Write what is at `path` into a file as it comes, however much it is."""
        import httpx

        request = self.http.build_request("GET", _join(path))
        try:
            response = await self.http.send(request, stream=True)
            async with aclosing(response):
                if not response.is_success:
                    await response.aread()
                    raise _failure(response)
                async for chunk in response.aiter_bytes():
                    into.write(chunk)
        except httpx.TransportError as error:
            raise _unreachable(request) from error

    async def _answer(self, request: httpx.Request) -> JsonObject:
        response = await self._sent(request)
        answer = _json_object(response)
        if answer is None:
            raise _failure(response)
        return answer

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        import httpx

        try:
            response = await self.http.send(request)
        except httpx.TransportError as error:
            raise _unreachable(request) from error
        if not response.is_success:
            raise _failure(response)
        return response


@asynccontextmanager
async def connect(
    place: Place, *, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncGenerator[Api]:
    """Open the way to the service at `place`; `transport` stands in for the network.

    Raises:
        Unauthenticated: No token is known for a server that is elsewhere.
        RegistryUnavailable: The service inside this process cannot start.
    """
    opened = _in_process(place.settings()) if place.url is None else _client(place, transport)
    async with opened as http:
        yield Api(http)


def _client(place: Place, transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    import httpx

    assert place.url is not None
    near = urlsplit(place.url).hostname in LOOPBACK
    if not near and not os.environ.get("TALLYSTICK_TOKEN"):
        raise Unauthenticated("TALLYSTICK_TOKEN is not set.")
    return httpx.AsyncClient(
        base_url=place.url,
        headers=_bearer(place.home),
        timeout=REQUEST_SECONDS_MAX,
        transport=transport,
        # A proxy of the environment is for other machines; it must not see this machine's token.
        trust_env=not near,
    )


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncGenerator[httpx.AsyncClient]:
    import httpx

    from server.app import build

    app = build(settings)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        yield await stack.enter_async_context(
            httpx.AsyncClient(
                base_url="http://registry",
                headers=_bearer(settings.home),
                timeout=REQUEST_SECONDS_MAX,
                # A defect is answered as the server would answer it, and logged.
                transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            )
        )


def _check_database_url(database_url: str | None) -> None:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        conninfo_to_dict(database_url or "")
    except ProgrammingError:
        # Its message quotes the URL, and with it perhaps the password.
        raise typer.BadParameter("DATABASE_URL is no URL of a PostgreSQL database.") from None


def _bearer(home: Path | None) -> dict[str, str]:
    """Return whom the command speaks for: the environment's token, or else this machine's admin.

    A token that is set is never passed over: what its holder does would be the admin's doing.
    """
    token = os.environ.get("TALLYSTICK_TOKEN") or _admin_token(home)
    return {"Authorization": f"Bearer {token}"}


def _admin_token(home: Path | None) -> str:
    from server.home import admin_token_file, default_home

    file = admin_token_file(home or default_home())
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as fault:
        raise Unauthenticated(
            f"TALLYSTICK_TOKEN is not set, and {file} cannot be read: {fault.strerror}."
        ) from fault


def _json_object(response: httpx.Response) -> JsonObject | None:
    try:
        answer: object = response.json()
    except ValueError:
        return None
    return cast("JsonObject", answer) if isinstance(answer, dict) else None


def _unreachable(request: httpx.Request) -> RegistryUnavailable:
    return RegistryUnavailable(f"The registry at {_origin(request.url)} cannot be reached.")


def _failure(response: httpx.Response) -> Refusal | Outage:
    """Return the error that a problem document (RFC 9457) tells of, or that there is none."""
    problem = _json_object(response)
    if problem is None or not isinstance(problem.get("code"), str):
        return RegistryUnavailable(
            f"{_origin(response.url)} answered {response.status_code}, but not as a registry does."
        )
    return error_for(problem["code"])(
        problem.get("detail") or problem.get("title") or "The registry refused.",
        pointer=problem.get("pointer"),
        facts=problem.get("facts"),
    )


def _join(path: tuple[str, ...]) -> str:
    return "/v1/" + "/".join(quote(segment, safe="") for segment in path)


def _origin(url: httpx.URL) -> str:
    """Name a server without what may be secret in its URL."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"

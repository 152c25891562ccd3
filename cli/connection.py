"""The way to the service: a server at a URL, or the service itself inside this process.

A command sees one `Api` and cannot tell which of the two it is.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

from tallystick.errors import RegistryUnavailable, Unauthenticated, error_for

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
        """Return the service's settings on this machine."""
        from server.settings import Settings

        settings = Settings.read()
        return settings if self.home is None else settings.model_copy(update={"home": self.home})


class Api:
    """The HTTP API: a call returns the parsed answer, or raises a class of `tallystick.errors`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, *path: str, **query: str | int | bool | None) -> JsonObject:
        """Read what is at `path`, whose segments are given unquoted; a `None` is not asked for."""
        asked = {name: value for name, value in query.items() if value is not None}
        return await self._answer(self._http.build_request("GET", _join(path), params=asked))

    async def post(self, *path: str, body: Mapping[str, object]) -> JsonObject:
        """Send `body` to `path`, whose segments are given unquoted; a `None` is not sent."""
        sent = {name: value for name, value in body.items() if value is not None}
        return await self._answer(self._http.build_request("POST", _join(path), json=sent))

    async def _answer(self, request: httpx.Request) -> JsonObject:
        import httpx

        try:
            response = await self._http.send(request)
        except httpx.TransportError as error:
            raise RegistryUnavailable(
                f"The registry at {_origin(request.url)} cannot be reached."
            ) from error
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or (response.is_error and "code" not in answer):
            raise RegistryUnavailable(
                f"{_origin(request.url)} answered {response.status_code}, "
                "but not as a registry does."
            )
        if response.is_error:
            raise error_for(answer["code"])(
                answer["detail"], pointer=answer.get("pointer"), facts=answer.get("facts")
            )
        return answer


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
    return httpx.AsyncClient(
        base_url=place.url,
        headers={"Authorization": f"Bearer {_token(place)}"},
        timeout=REQUEST_SECONDS_MAX,
        transport=transport,
        # A proxy of the environment is for other machines; it must not see this machine's token.
        trust_env=not _is_loopback(place.url),
    )


def _token(place: Place) -> str:
    token = os.environ.get("TALLYSTICK_TOKEN")
    if token:
        return token
    if place.url is not None and _is_loopback(place.url):
        file = place.settings().home / "admin-token"
        if file.is_file():
            return file.read_text(encoding="ascii").strip()
        raise Unauthenticated(f"TALLYSTICK_TOKEN is not set, and there is no token in {file}.")
    raise Unauthenticated("TALLYSTICK_TOKEN is not set.")


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncGenerator[httpx.AsyncClient]:
    import httpx

    from server.app import build
    from server.home import admin_token

    app = build(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            base_url="http://registry",
            headers={"Authorization": f"Bearer {admin_token(settings)}"},
            timeout=REQUEST_SECONDS_MAX,
            transport=httpx.ASGITransport(app),
        ) as http,
    ):
        yield http


def _join(path: tuple[str, ...]) -> str:
    return "/v1/" + "/".join(quote(segment, safe="") for segment in path)


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


def _origin(url: httpx.URL) -> str:
    """Name a server without what may be secret in its URL."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"

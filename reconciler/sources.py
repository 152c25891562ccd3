"""Asks a provider: over HTTP, or through a plug-in. No transaction is open while it is asked."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Protocol

import httpx

from ledger.evidence import Answer
from ledger.judgement import Judgement
from reconciler.addresses import PORTS, Address, Hosts
from reconciler.judgement import judge, url_of
from reconciler.plugins import Plugins
from tallystick.evidence_source import EvidenceQuestion
from tallystick.provider import HttpEvidence
from tallystick.tool_contract import Contract

_BODY_BYTES_MAX: Final = 256 * 1024
_ADDRESSES_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom a provider is asked: the effect's tenant, by its slug.

    ``is_publisher`` tells whether the contract is its own. Another tenant's contract chooses the
    host and the name of the secret too.
    """

    tenant: str
    is_publisher: bool


@dataclass(frozen=True, slots=True)
class Response:
    """What a provider answered, and the link to the next page that its `Link` header has."""

    status: int
    body: bytes
    link: str | None = None


class Fetcher(Protocol):
    """Whoever can send a provider a GET."""

    async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
        """Return the answer, or why there is none."""
        ...


class Source(Protocol):
    """Whoever can be asked about an effect."""

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        """Ask once; None where the contract names nobody to ask."""
        ...


SecretOf = Callable[[Asker, str, str], str | None]
"""Returns an asker's secret by the name of its slot and the ``host:port`` that is to have it."""

Resolve = Callable[[str, int], Coroutine[None, None, list[str]]]


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name, the best first. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(where[0]) for *_, where in found]


class HttpSource:
    """Looks effects up at their providers.

    It asks only hosts that the operator allows, at addresses that it has judged itself, and follows
    no redirect.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        hosts: Hosts,
        secret_of: SecretOf,
        resolve: Resolve = resolve,
    ) -> None:
        """Take a client, whom it may ask and where, whose secrets, and who knows names."""
        self._client = client
        self._hosts = hosts
        self._secret_of = secret_of
        self._resolve = resolve
        self._resolving: dict[str, asyncio.Task[list[str]]] = {}

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        """Ask once.

        A provider that cannot be asked is `unavailable`: an answer too, and kept as one.
        """
        http = contract.evidence.http if contract.evidence else None
        if http is None:
            return None
        answer = await self.fetch(url_of(http, question), http, asker)
        if isinstance(answer, str):
            return Judgement(Answer.UNAVAILABLE, answer)
        return judge(contract, question, answer.status, answer.body)

    async def fetch(self, url: str, http: HttpEvidence, asker: Asker) -> Response | str:
        """Return the answer to a GET, or why there is none.

        ``http`` says the rest: headers, secret and timeout.
        """
        try:
            # The client's own timeout is for each read: an answer could drip in for ever.
            async with asyncio.timeout(http.timeout_seconds):
                return await self._fetch(httpx.URL(url), http, asker)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as fault:
            return f"not reached: {type(fault).__name__}"

    async def _fetch(self, url: httpx.URL, http: HttpEvidence, asker: Asker) -> Response | str:
        place, port = _place(url), _port(url)
        if place not in self._hosts:
            return "the host is not in the list of evidence hosts"
        headers = httpx.Headers(http.headers)
        if http.secret:
            secret = self._secret_of(asker, http.secret, place)
            if secret is None:
                return f"there is no secret {http.secret!r} for this tenant and host"
            if url.scheme != "https" and place not in self._hosts.private:
                return "a secret goes to this host over https only"
            if not (secret.isascii() and secret.isprintable()):
                return f"the secret {http.secret!r} cannot stand in a header"
            headers["Authorization"] = f"Bearer {secret}"
        addresses = [ip_address(each) for each in await self._resolved(url.host, port)]
        if not addresses or not self._hosts.may_be_at(place, addresses):
            return "the host has an address that may not be asked"
        for address in addresses[:_ADDRESSES_MAX]:
            with suppress(httpx.ConnectError):
                return await self._fetch_at(address, url, headers)
        raise httpx.ConnectError("no address takes a connection")

    async def _resolved(self, host: str, port: int) -> list[str]:
        """Resolve a name once for all who ask now.

        A look-up holds a thread, of which there are few, for as long as the name server likes.
        """
        place = f"{host}:{port}"
        if place not in self._resolving:
            self._resolving[place] = asyncio.create_task(self._resolve(host, port))
            self._resolving[place].add_done_callback(lambda _: self._resolving.pop(place))
        return await asyncio.shield(self._resolving[place])

    async def _fetch_at(
        self, address: Address, url: httpx.URL, headers: httpx.Headers
    ) -> Response | str:
        # To this very address: a name that is resolved again may lead elsewhere. The name is still
        # what the provider is called by, and what its certificate must be for; and so the
        # connection ends with the answer, lest another name at this address be asked over it.
        headers["Host"] = url.netloc.decode("ascii")
        headers["Connection"] = "close"
        # What is compressed may be a thousand times as large as it is counted.
        headers["Accept-Encoding"] = "identity"
        # What a cache has says nothing of now: two answers from there are one.
        headers["Cache-Control"] = "no-cache"
        async with self._client.stream(
            "GET",
            url.copy_with(host=str(address)),
            headers=headers,
            timeout=None,
            follow_redirects=False,
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        ) as response:
            if response.headers.get("Age", "0").strip("0"):
                return "the answer comes from a cache"
            body = b""
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _BODY_BYTES_MAX:
                    return "the answer is too large"
        return Response(response.status_code, body, response.links.get("next", {}).get("url"))


def place_of(contract: Contract) -> str:
    """Return who is asked about a contract's effects, as a lane has it."""
    evidence = contract.evidence
    if evidence is not None and evidence.plugin is not None:
        return evidence.plugin.name
    if evidence is None or evidence.http is None:
        return ""
    try:
        return _place(httpx.URL(evidence.http.url))
    except httpx.InvalidURL:
        return ""


def _place(url: httpx.URL) -> str:
    return f"{url.host}:{_port(url)}"


def _port(url: httpx.URL) -> int:
    return url.port or PORTS[url.scheme]


@dataclass(frozen=True, slots=True)
class Sources:
    """Every kind of source: a contract says which of them is asked."""

    http: Source
    plugins: Plugins

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        """Ask once; None where the contract names nobody to ask."""
        evidence = contract.evidence
        if evidence is not None and evidence.plugin is not None:
            return await self.plugins.ask(evidence.plugin, question)
        return await self.http.ask(contract, question, asker)

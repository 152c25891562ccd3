"""The outside issuer (OpenID Connect): its keys over HTTP, and the tokens that it signed.

Nothing that a token says leads anywhere: the address of the keys comes from the settings or from
the issuer's own discovery document, never from a header such as ``jku`` or ``x5u``.
"""

import asyncio
import base64
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx
import jwt
from jwt.types import Options

from access.claims import Identity, identity_of
from access.key_set import KeySet
from access.token import unknown
from tallystick.canonical import Json, parse_json
from tallystick.errors import RegistryUnavailable

_log = logging.getLogger("tallystick.access")

TOKEN_CHARS_MAX: Final = 16 * 1024
DOCUMENT_BYTES_MAX: Final = 512 * 1024
FETCH_SECONDS_MAX: Final = 5.0
FRESH_SECONDS: Final = 300.0
PAUSE_SECONDS: Final = 10.0
LEEWAY_SECONDS: Final = 30
_DISCOVERY: Final = "/.well-known/openid-configuration"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# ``nbf`` is held to where it stands: most issuers leave it out, and RFC 7519 lets them.
_REQUIRED: Final = ["exp", "iat", "iss", "aud", "sub"]


@dataclass(frozen=True, slots=True)
class Trust:
    """Which issuer is trusted, for tokens made for whom, and where they say tenant and roles."""

    issuer: str
    audience: str
    tenant_claim: str
    roles_claim: str
    jwks_url: str | None = None


class Issuer:
    """Verifies the tokens of one issuer with its published keys.

    The keys are believed for 5 minutes. A key id that is not among them has them fetched again, at
    most every 10 seconds and one fetch at a time, so that nobody can make us ask more often.
    """

    def __init__(
        self,
        trust: Trust,
        client: httpx.AsyncClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take whom to trust, the way there, and a clock in seconds."""
        self._trust = trust
        self._client = client
        self._clock = clock
        self._fetching = asyncio.Lock()
        self._keys = KeySet.empty()
        self._tried_at = self._fetched_at = -math.inf

    async def identify(self, token: str) -> Identity:
        """Return whom a token speaks for.

        Raises:
            Unauthenticated: The issuer did not make the token, or not for us, or not for now.
            RegistryUnavailable: The issuer's keys are needed and cannot be had.
        """
        try:
            key_id, algorithm = _read_form(token)
        except ValueError as fault:
            _log.info("a token was refused: it is malformed")
            raise unknown() from fault
        key = await self._key(key_id, algorithm)
        try:
            claims: dict[str, Json] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._trust.audience,
                issuer=self._trust.issuer,
                leeway=LEEWAY_SECONDS,
                options=Options(require=_REQUIRED, enforce_minimum_key_length=True),
            )
        except jwt.PyJWTError as fault:
            _log.info("a token was refused: %s", type(fault).__name__)
            raise unknown() from fault
        trust = self._trust
        return identity_of(claims, tenant_claim=trust.tenant_claim, roles_claim=trust.roles_claim)

    async def _key(self, key_id: str, algorithm: str) -> jwt.PyJWK:
        if self._is_fetch_due(key_id):
            async with self._fetching:
                # Whoever waited here may find that the one before has fetched it.
                if self._is_fetch_due(key_id):
                    await self._fetch()
        has_failed = self._fetched_at < self._tried_at
        if not self._is_fresh() or (has_failed and not self._keys.has(key_id)):
            raise _unreachable()
        key = self._keys.find(key_id, algorithm)
        if key is None:
            _log.info("a token was refused: its key or algorithm is not the issuer's")
            raise unknown()
        return key

    def _is_fresh(self) -> bool:
        return self._clock() - self._fetched_at < FRESH_SECONDS

    def _is_fetch_due(self, key_id: str) -> bool:
        is_wanted = not self._is_fresh() or not self._keys.has(key_id)
        return is_wanted and self._clock() - self._tried_at >= PAUSE_SECONDS

    async def _fetch(self) -> None:
        tried_at = self._clock()
        try:
            async with asyncio.timeout(FETCH_SECONDS_MAX):
                self._keys = KeySet.parse(await self._get(await self._address_of_keys()))
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as fault:
            _log.warning("the issuer's keys cannot be fetched: %s", type(fault).__name__)
            self._tried_at = tried_at
            raise _unreachable() from fault
        self._tried_at = self._fetched_at = tried_at

    async def _address_of_keys(self) -> str:
        if self._trust.jwks_url is not None:
            return self._trust.jwks_url
        document = await self._get(self._trust.issuer.rstrip("/") + _DISCOVERY)
        # OpenID Connect Discovery 1.0, section 4.3: the document speaks for this very issuer.
        if not isinstance(document, dict) or document.get("issuer") != self._trust.issuer:
            raise ValueError("The discovery document is another issuer's.")
        address = document.get("jwks_uri")
        if not isinstance(address, str):
            raise ValueError("The discovery document names no keys.")  # noqa: TRY004
        return address

    async def _get(self, url: str) -> Json:
        if not is_private_way(url):
            raise ValueError("Keys are fetched over https.")
        body = bytearray()
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream(
            "GET", url, headers=headers, follow_redirects=False, timeout=FETCH_SECONDS_MAX
        ) as response:
            if not response.is_success:
                raise ValueError(f"The issuer answered {response.status_code}.")
            # As it comes: what is unpacked has no bound.
            async for part in response.aiter_raw():
                body += part
                if len(body) > DOCUMENT_BYTES_MAX:
                    raise ValueError("The issuer's answer is too large.")
        return parse_json(bytes(body))


def is_private_way(url: str) -> bool:
    """Tell whether nobody between here and ``url`` can read or change what is fetched from it."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.password is not None:
        return False
    is_near = parts.hostname in LOOPBACK
    return has_port and (parts.scheme == "https" or (parts.scheme == "http" and is_near))


def _read_form(token: str) -> tuple[str, str]:
    """Return a token's key id and algorithm.

    Its header and claims are read strictly first: what two readers read differently, such as a
    claim that is there twice, is in no token that is believed. Raises ValueError.
    """
    if len(token) > TOKEN_CHARS_MAX:
        raise ValueError("The token is too large.")
    if "=" in token:
        raise ValueError("A token has one spelling, and no padding (RFC 7515, section 2).")
    header, claims, _ = token.split(".")
    read = _read_segment(header)
    if not isinstance(read, dict) or not isinstance(_read_segment(claims), dict):
        raise ValueError("A token has two objects.")  # noqa: TRY004 - it is not its type
    key_id, algorithm = read.get("kid"), read.get("alg")
    if not isinstance(key_id, str) or not isinstance(algorithm, str):
        raise ValueError("A token names its key and its algorithm.")  # noqa: TRY004
    if "crit" in read or "b64" in read:
        raise ValueError("No extension is understood here.")
    return key_id, algorithm


def _read_segment(text: str) -> Json:
    padded = text + "=" * (-len(text) % 4)
    return parse_json(base64.b64decode(padded, altchars=b"-_", validate=True))


def _unreachable() -> RegistryUnavailable:
    return RegistryUnavailable("The issuer of the token cannot be asked for its keys.")

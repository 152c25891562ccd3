"""Asks a provider over HTTP. No transaction is open while it is asked."""

import asyncio
from collections.abc import Callable
from typing import Final

import httpx

from ledger.settlement import Answer
from reconciler.judgement import Judgement, Question, judge, url_of
from tallystick.tool_contract import Contract

_BODY_BYTES_MAX: Final = 256 * 1024
_PORTS: Final = {"http": 80, "https": 443}
_NOT_ALLOWED: Final = "the host is not in the list of evidence hosts"

SecretOf = Callable[[str], str | None]


class HttpSource:
    """Looks effects up at their providers.

    It asks only hosts that the operator allows, and follows no redirect.
    """

    def __init__(
        self, client: httpx.AsyncClient, allowed: frozenset[str], secret_of: SecretOf
    ) -> None:
        """Take a client, the ``host:port`` pairs that may be asked, and the secrets by name."""
        self._client = client
        self._allowed = allowed
        self._secret_of = secret_of

    async def ask(self, contract: Contract, question: Question) -> Judgement:
        """Ask once.

        A provider that cannot be asked is `unavailable`: an answer too, and kept as one.
        """
        assert contract.evidence is not None
        http = contract.evidence.http
        headers = dict(http.headers)
        if http.secret is not None:
            secret = self._secret_of(http.secret)
            if secret is None:
                return Judgement(Answer.UNAVAILABLE, f"the secret {http.secret!r} is not there")
            headers["Authorization"] = f"Bearer {secret}"
        try:
            url = httpx.URL(url_of(http, question))
            if f"{url.host}:{url.port or _PORTS[url.scheme]}" not in self._allowed:
                return Judgement(Answer.UNAVAILABLE, _NOT_ALLOWED)
            # The client's own timeout is for each read: an answer could drip in for ever.
            async with (
                asyncio.timeout(http.timeout_seconds),
                self._client.stream(
                    "GET", url, headers=headers, timeout=None, follow_redirects=False
                ) as response,
            ):
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _BODY_BYTES_MAX:
                        return Judgement(Answer.UNAVAILABLE, "the answer is too large")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as fault:
            return Judgement(Answer.UNAVAILABLE, f"not reached: {type(fault).__name__}")
        return judge(contract, question, response.status_code, body)

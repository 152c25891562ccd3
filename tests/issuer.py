"""An OpenID issuer on loopback: it publishes keys, and signs what a test asks it to."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "tallystick"
DISCOVERY = "/.well-known/openid-configuration"

# Made once: they are slow to make, and a test changes which of them are published.
_RSA = rsa.generate_private_key(65537, 2048)
_EC = ec.generate_private_key(ec.SECP256R1())
_ED = ed25519.Ed25519PrivateKey.generate()
PRIVATE: dict[str, Any] = {"rsa": _RSA, "ec": _EC, "ed": _ED}
PUBLIC: dict[str, dict[str, Any]] = {
    "rsa": json.loads(RSAAlgorithm.to_jwk(_RSA.public_key())) | {"kid": "rsa", "use": "sig"},
    "ec": json.loads(ECAlgorithm.to_jwk(_EC.public_key())) | {"kid": "ec"},
    "ed": json.loads(OKPAlgorithm.to_jwk(_ED.public_key())) | {"kid": "ed", "alg": "EdDSA"},
}


class Issuer:
    """Answers discovery and its keys, and notes what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.was_asked = asyncio.Event()
        self.published = ["rsa", "ec", "ed"]
        self.changes: dict[str, Any] = {}
        self.raw: dict[str, bytes] = {}
        self.status = 200
        self.headers = b""
        self.hold: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """Return who it is."""
        return f"http://127.0.0.1:{self.port}"

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return claims that are good now; a change of None leaves one out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "agent-7",
            "iat": now,
            "nbf": now,
            "exp": now + 600,
            "tallystick_tenant": "default",
            "tallystick_roles": ["runtime"],
        } | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, key: str = "ec", algorithm: str = "ES256", *, headers: Any = None, **changes: Any
    ) -> str:
        """Sign claims with one of the keys."""
        told = {"kid": key} | (headers or {})
        return jwt.encode(self.claims(**changes), PRIVATE[key], algorithm, headers=told)

    def answer(self, path: str) -> bytes:
        """Return the body for a path."""
        if path in self.raw:
            return self.raw[path]
        if path == DISCOVERY:
            document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | self.changes
            return json.dumps(document).encode()
        return json.dumps({"keys": [PUBLIC[name] for name in self.published]}).encode()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            self.asked.append(path)
            self.was_asked.set()
            if self.hold is not None:
                await self.hold.wait()
            body = self.answer(path)
            writer.write(
                b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n"
                % (self.status, len(body), self.headers)
                + body
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # who asked did not want to know the rest
        finally:
            writer.close()


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """Run an issuer on a free port of loopback."""
    issuer = Issuer()
    server = await asyncio.start_server(issuer._serve, "127.0.0.1", 0)
    issuer.port = server.sockets[0].getsockname()[1]
    try:
        yield issuer
    finally:
        if issuer.hold is not None:
            issuer.hold.set()
        server.close()
        await server.wait_closed()

"""The issuer that the settings trust, with a way to it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from access.oidc import LOOPBACK, Issuer, Trust
from server.settings import Settings


def trust_of(settings: Settings) -> Trust | None:
    """Return whom the settings trust, if anybody."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    return Trust(
        settings.oidc_issuer,
        settings.oidc_audience,
        settings.oidc_tenant_claim,
        settings.oidc_roles_claim,
        settings.oidc_jwks_url,
    )


@asynccontextmanager
async def trusted(settings: Settings) -> AsyncGenerator[Issuer | None]:
    """Open the way to the issuer while the context lasts. Nobody is asked before a token comes."""
    trust = trust_of(settings)
    if trust is None:
        yield None
        return
    # A proxy of the environment is for other machines.
    is_near = urlsplit(trust.issuer).hostname in LOOPBACK
    async with httpx.AsyncClient(trust_env=not is_near) as client:
        yield Issuer(trust, client)

"""API tokens: how one is made, what is kept of it, and what may be shown. Pure, but for chance."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from kernel.roles import Role
from tallystick.errors import Unauthenticated

_MARK: Final = "tk_"
_ENTROPY_BYTES: Final = 32
_FORM: Final = re.compile(r"tk_[A-Za-z0-9_-]{43}")
_PREFIX_CHARS: Final = 11


class TokenState(StrEnum):
    """Whether a token opens anything."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """What may be shown of a token: never itself, nor its hash.

    ``last_used_at`` is true to about a minute. ``replaces`` is the token that this one was rotated
    from.
    """

    token_id: UUID
    name: str
    prefix: str
    principal: str
    roles: frozenset[Role]
    state: TokenState
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    replaces: UUID | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A token to be made: its label, whom it speaks for, and for how long."""

    name: str
    principal: str
    roles: frozenset[Role]
    lifetime: timedelta | None
    replaces: UUID | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows of a presented token that is in force."""

    token_id: UUID
    tenant_id: UUID
    tenant: str
    principal: str
    roles: frozenset[Role]
    seconds_left: float
    is_use_due: bool


def new_token() -> str:
    """Return a new token: ``tk_`` and 256 random bits in 43 characters."""
    return _MARK + secrets.token_urlsafe(_ENTROPY_BYTES)


def bearer_token(authorization: str | None) -> str:
    """Return the token of an ``Authorization`` header (RFC 6750). Raises Unauthenticated."""
    scheme, _, rest = (authorization or "").partition(" ")
    token = rest.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("Send a token: Authorization: Bearer <token>.")
    return token


def token_hash(token: str) -> bytes:
    """Return what the database keeps of a token: a random one needs no salt and no slow hash."""
    return hashlib.sha256(token.encode()).digest()


def prefix_of(token: str) -> str:
    """Return what a token is recognised by: its first 11 characters.

    Of a token that was not made here it is empty: who knows how much a part of it gives away.
    """
    return token[:_PREFIX_CHARS] if _FORM.fullmatch(token) else ""


def is_assertion(token: str) -> bool:
    """Tell whether a token has the form of a signed one (RFC 7519) rather than of one of ours."""
    return not token.startswith(_MARK) and token.count(".") == 2  # noqa: PLR2004 - RFC 7515, 3.1


def unknown() -> Unauthenticated:
    """Return the refusal of a token: the same words, whatever is wrong with it."""
    return Unauthenticated("The token is not known here, has expired, or was revoked.")

"""A resolution as a lease: a signed token with an expiry, not stored. Pure.

A lease lets a cached plan begin on a version that has been closed since, until the lease runs out,
so that fleets drain in bounded time. The database decides again at dispatch all the same.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import jwt
from jwt.types import Options

from kernel.keys import KeyRing
from tallystick.errors import InvalidRequest

_ALGORITHM = "HS256"
_PURPOSE = "lease"


@dataclass(frozen=True, slots=True)
class Lease:
    """The version that was resolved, when, and until when that may be relied on."""

    contract_id: UUID
    issued_at: datetime
    expires_at: datetime

    def admits(self, contract_id: UUID, *, closed_at: datetime | None, now: datetime) -> bool:
        """Tell whether a plan under this lease may still begin on a closed version."""
        return (
            self.contract_id == contract_id
            and now < self.expires_at
            and (closed_at is None or self.issued_at <= closed_at)
        )


def sign(lease: Lease, keys: KeyRing, tenant_id: UUID) -> str:
    """Return the lease as a token (RFC 7519) that only this tenant's service can have made."""
    claims = {
        "contract": str(lease.contract_id),
        "iat": lease.issued_at.timestamp(),
        "exp": lease.expires_at.timestamp(),
    }
    key = keys.derive(keys.current, tenant_id, _PURPOSE)
    return jwt.encode(claims, key, algorithm=_ALGORITHM, headers={"kid": keys.current})


def read(token: str, keys: KeyRing, tenant_id: UUID) -> Lease:
    """Read a token that :func:`sign` made.

    Whether it has run out is for the database's clock to say.

    Raises:
        InvalidRequest: The token is not a lease of this tenant.
    """
    try:
        key_id = jwt.get_unverified_header(token)["kid"]
        key = keys.derive(key_id, tenant_id, _PURPOSE)
        unchecked_times = Options(verify_exp=False, verify_iat=False)
        claims = jwt.decode(token, key, algorithms=[_ALGORITHM], options=unchecked_times)
        return Lease(
            UUID(claims["contract"]),
            datetime.fromtimestamp(claims["iat"], tz=UTC),
            datetime.fromtimestamp(claims["exp"], tz=UTC),
        )
    except (jwt.InvalidTokenError, KeyError, ValueError, TypeError) as fault:
        raise InvalidRequest(
            "The lease is not one that was issued here.", pointer="/lease"
        ) from fault

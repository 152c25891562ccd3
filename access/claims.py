"""What a verified token of the issuer says about its holder. Pure.

An issuer's subjects and the principals of this service's own tokens are one name space for each
tenant: a subject `billing` has the grants of a token that speaks for `billing`. So an issuer is
trusted not to give out the name of somebody else. No principal begins as the service's own words
in the records do: the actor of a record is a principal, or one of `RESERVED` and what follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from access.token import unknown
from kernel.roles import Role
from tallystick.canonical import Json

RESERVED: Final = ("worker:", "person:", "reconciler:")

_PRINCIPAL_CHARS_MAX: Final = 255  # OpenID Connect Core 1.0, section 2
_KNOWN: Final = frozenset(map(str, Role))


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token speaks for: a tenant by its slug, a principal, and the roles known here."""

    tenant: str
    principal: str
    roles: frozenset[Role]


def identity_of(claims: Mapping[str, Json], *, tenant_claim: str, roles_claim: str) -> Identity:
    """Read the claims. A role that is not known here is passed over: issuers serve others too.

    Raises:
        Unauthenticated: There is no tenant, or no subject that could be a principal: one of at
            most 255 printable characters that does not begin with a reserved word.
    """
    tenant, principal, roles = claims.get(tenant_claim), claims.get("sub"), claims.get(roles_claim)
    if not isinstance(tenant, str) or not isinstance(principal, str):
        raise unknown()
    is_free = principal.isprintable() and not principal.startswith(RESERVED)
    if not (0 < len(principal) <= _PRINCIPAL_CHARS_MAX and is_free):
        raise unknown()
    named = roles if isinstance(roles, list) else []
    known = frozenset(Role(one) for one in named if isinstance(one, str) and one in _KNOWN)
    return Identity(tenant, principal, known)

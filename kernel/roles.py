"""Roles, and the law of what each of them may do. Pure: who holds a role is told elsewhere."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a token or an issuer says that its holder is, within one tenant."""

    RUNTIME = "runtime"
    PUBLISHER = "publisher"
    APPROVER = "approver"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Permission(StrEnum):
    """What a route asks for. Every route asks for exactly one, before it looks anything up."""

    READ_CONTRACTS = "read_contracts"
    PUBLISH = "publish"
    USE_EFFECTS = "use_effects"
    READ_EFFECTS = "read_effects"
    CANCEL_EFFECTS = "cancel_effects"
    SETTLE_EFFECTS = "settle_effects"
    APPROVE = "approve"
    MANAGE_ROLLOUT = "manage_rollout"
    MANAGE_CREDENTIALS = "manage_credentials"
    MANAGE_GRANTS = "manage_grants"
    MANAGE_TOKENS = "manage_tokens"
    MANAGE_SHARING = "manage_sharing"
    MANAGE_KEYS = "manage_keys"
    MANAGE_POLICIES = "manage_policies"
    READ_METRICS = "read_metrics"
    AUDIT = "audit"


def _held_by(*roles: Role) -> frozenset[Role]:
    return frozenset({*roles, Role.ADMIN})


HOLDERS: Final[Mapping[Permission, frozenset[Role]]] = {
    Permission.READ_CONTRACTS: _held_by(*Role),
    Permission.PUBLISH: _held_by(Role.PUBLISHER),
    Permission.USE_EFFECTS: _held_by(Role.RUNTIME),
    Permission.READ_EFFECTS: _held_by(Role.RUNTIME, Role.OPERATOR, Role.APPROVER, Role.AUDITOR),
    Permission.CANCEL_EFFECTS: _held_by(Role.RUNTIME, Role.OPERATOR),
    Permission.SETTLE_EFFECTS: _held_by(Role.OPERATOR),
    Permission.APPROVE: _held_by(Role.APPROVER),
    Permission.MANAGE_ROLLOUT: _held_by(Role.OPERATOR),
    Permission.MANAGE_CREDENTIALS: _held_by(Role.OPERATOR),
    Permission.MANAGE_GRANTS: _held_by(),
    Permission.MANAGE_TOKENS: _held_by(),
    Permission.MANAGE_SHARING: _held_by(),
    Permission.MANAGE_KEYS: _held_by(),
    Permission.MANAGE_POLICIES: _held_by(Role.OPERATOR),
    Permission.READ_METRICS: _held_by(Role.OPERATOR, Role.AUDITOR),
    Permission.AUDIT: _held_by(Role.AUDITOR),
}
"""Who may do what. An administrator may do everything."""


def holds(roles: frozenset[Role], permission: Permission) -> bool:
    """Say whether somebody with these roles may do it."""
    return not roles.isdisjoint(HOLDERS[permission])

"""The law of roles: what each of them may do, told once more by hand."""

import pytest

from kernel.roles import HOLDERS, Permission, Role, holds

# Beside reading contracts, which everybody may.
MAY = {
    Role.RUNTIME: {"use_effects", "read_effects", "cancel_effects"},
    Role.PUBLISHER: {"publish"},
    Role.APPROVER: {"read_effects", "approve"},
    Role.OPERATOR: {
        "read_effects",
        "cancel_effects",
        "settle_effects",
        "manage_rollout",
        "manage_credentials",
        "manage_policies",
        "read_metrics",
    },
    Role.AUDITOR: {"read_effects", "read_metrics", "audit"},
    Role.ADMIN: set(Permission),
}


def test_every_role_and_permission_has_its_law():
    assert MAY.keys() == set(Role)
    assert HOLDERS.keys() == set(Permission)


@pytest.mark.parametrize("role", Role)
def test_what_a_role_may_do(role: Role):
    may = {permission for permission in Permission if holds(frozenset({role}), permission)}
    assert may == MAY[role] | {"read_contracts"}


def test_roles_add_up_and_none_gives_nothing():
    both = frozenset({Role.RUNTIME, Role.PUBLISHER})
    assert holds(both, Permission.PUBLISH)
    assert holds(both, Permission.USE_EFFECTS)
    assert not holds(both, Permission.MANAGE_ROLLOUT)
    assert not any(holds(frozenset(), permission) for permission in Permission)

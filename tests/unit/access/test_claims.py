"""What is read from the claims of a token whose signature holds."""

from typing import Any

import pytest

from access.claims import Identity, identity_of
from kernel.roles import Role
from tallystick.errors import Unauthenticated

CLAIMS = {"sub": "agent-7", "tenant": "acme", "roles": ["runtime", "auditor"]}


def read(**changes: Any) -> Identity:
    return identity_of(CLAIMS | changes, tenant_claim="tenant", roles_claim="roles")


def test_a_whole_identity():
    assert read() == Identity("acme", "agent-7", frozenset({Role.RUNTIME, Role.AUDITOR}))


@pytest.mark.parametrize(
    "changes",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["agent-7"]},
        {"sub": "a" * 256},
        {"sub": "agent\n7"},
        {"sub": "worker:7"},
        {"sub": "person:ada"},
        {"sub": "reconciler:host:1"},
        {"sub": "agent\x1b[31m"},
        {"tenant": None},
        {"tenant": ["acme"]},
        {"tenant": {"slug": "acme"}},
    ],
)
def test_nobody_in_particular_is_nobody(changes: dict[str, Any]):
    with pytest.raises(Unauthenticated):
        read(**changes)


@pytest.mark.parametrize(
    "subject",
    [
        "repo:acme/shop:ref:refs/heads/main",
        "system:serviceaccount:agents:billing",
        "worker",
        "auth0|7",
    ],
)
def test_subjects_of_well_known_issuers(subject: str):
    assert read(sub=subject).principal == subject


@pytest.mark.parametrize(
    ("roles", "known"),
    [
        ([], set()),
        (None, set()),
        ("admin", set()),
        ({"admin": True}, set()),
        (["Admin", "ADMIN", " admin", "root"], set()),
        ([["admin"], {"role": "admin"}, 1, None, True], set()),
        (["root", "publisher", "publisher"], {Role.PUBLISHER}),
    ],
)
def test_a_role_that_is_not_known_is_none(roles: Any, known: set[Role]):
    assert read(roles=roles).roles == known

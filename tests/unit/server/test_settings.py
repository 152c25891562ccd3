"""What the environment says, and what is taken where it says nothing."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from access.oidc import Trust
from server.issuer import trust_of
from server.settings import Settings

PASSWORD = "canary-pass"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take whatever this machine says of the service out of the environment."""
    for name in ("DATABASE_URL", *(f"TALLYSTICK_{one.upper()}" for one in Settings.model_fields)):
        monkeypatch.delenv(name, raising=False)


def test_one_machine_needs_no_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    settings = Settings.read()
    assert (settings.database_url, settings.key_file) == (None, None)
    assert (settings.host, settings.port) == ("127.0.0.1", 8420)
    assert settings.evidence_hosts == frozenset(), "nobody is asked unless an operator says so"
    assert settings.home.name == "tallystick"


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("DATABASE_URL", "postgresql://a/b", "database_url", "postgresql://a/b"),
        ("TALLYSTICK_HOME", "/srv/t", "home", Path("/srv/t")),
        ("TALLYSTICK_KEY_FILE", "/run/keys", "key_file", Path("/run/keys")),
        ("TALLYSTICK_SECRETS_FILE", "/run/s", "secrets_file", Path("/run/s")),
        ("TALLYSTICK_PORT", "0", "port", 0),
        ("TALLYSTICK_LEASE_SECONDS_MAX", "0.5", "lease_seconds_max", 0.5),
        ("TALLYSTICK_APPROVAL_SECONDS", "3600", "approval_seconds", 3600.0),
        ("TALLYSTICK_EVIDENCE_HOSTS", "", "evidence_hosts", frozenset[str]()),
        ("TALLYSTICK_EVIDENCE_HOSTS", "a:1", "evidence_hosts", frozenset({"a:1"})),
        ("TALLYSTICK_EVIDENCE_HOSTS", " a:1, b:2,,", "evidence_hosts", frozenset({"a:1", "b:2"})),
    ],
)
def test_what_is_said_is_taken(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, field: str, value: object
):
    monkeypatch.setenv(name, text)
    assert getattr(Settings.read(), field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TALLYSTICK_PORT", "65536"),
        ("TALLYSTICK_PORT", "http"),
        ("TALLYSTICK_POOL_SIZE", "1"),
        ("TALLYSTICK_LEASE_SECONDS_MAX", "0"),
        ("TALLYSTICK_APPROVAL_SECONDS", "0"),
        ("TALLYSTICK_APPROVAL_SECONDS", "1e300"),
        ("TALLYSTICK_SWEEP_SECONDS", "-1"),
        ("TALLYSTICK_REVERSE_SWEEP_SECONDS", "0"),
        ("TALLYSTICK_REQUEST_BYTES_MAX", "0"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
):
    monkeypatch.setenv(name, text)
    with pytest.raises(ValidationError):
        Settings.read()


ISSUER, AUDIENCE, KEYS = (f"TALLYSTICK_OIDC_{one}" for one in ("ISSUER", "AUDIENCE", "JWKS_URL"))
TRUST = {ISSUER: "https://issuer.example", AUDIENCE: "tallystick"}


def test_nobody_is_trusted_unless_the_settings_say_so():
    assert trust_of(Settings.read()) is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            TRUST,
            Trust(TRUST[ISSUER], "tallystick", "tallystick_tenant", "tallystick_roles"),
        ),
        (
            TRUST
            | {
                KEYS: "https://keys.example/jwks",
                "TALLYSTICK_OIDC_TENANT_CLAIM": "org",
                "TALLYSTICK_OIDC_ROLES_CLAIM": "groups",
            },
            Trust(TRUST[ISSUER], "tallystick", "org", "groups", "https://keys.example/jwks"),
        ),
    ],
)
def test_an_issuer_that_is_trusted(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], expected: Trust
):
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    assert trust_of(Settings.read()) == expected


@pytest.mark.parametrize(
    "told",
    [
        {ISSUER: "https://issuer.example"},
        {AUDIENCE: "tallystick"},
        TRUST | {ISSUER: "http://issuer.example"},
        TRUST | {ISSUER: "issuer.example"},
        TRUST | {AUDIENCE: ""},
        TRUST | {KEYS: "http://keys.example"},
        TRUST | {"TALLYSTICK_OIDC_TENANT_CLAIM": ""},
    ],
)
def test_an_issuer_that_could_not_be_trusted(monkeypatch: pytest.MonkeyPatch, told: dict[str, str]):
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(ValidationError):
        Settings.read()


def test_settings_do_not_show_the_databases_password(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", f"postgresql://u:{PASSWORD}@h/d")
    assert PASSWORD not in repr(Settings.read())
    assert PASSWORD not in str(Settings.read())

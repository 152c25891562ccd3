"""What the environment says, and what is taken where it says nothing."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from server.service import secret_of
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
        ("TALLYSTICK_PORT", "0", "port", 0),
        ("TALLYSTICK_LEASE_SECONDS_MAX", "0.5", "lease_seconds_max", 0.5),
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
        ("TALLYSTICK_SWEEP_SECONDS", "-1"),
        ("TALLYSTICK_REQUEST_BYTES_MAX", "0"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
):
    monkeypatch.setenv(name, text)
    with pytest.raises(ValidationError):
        Settings.read()


def test_settings_do_not_show_the_databases_password(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", f"postgresql://u:{PASSWORD}@h/d")
    assert PASSWORD not in repr(Settings.read())
    assert PASSWORD not in str(Settings.read())


@pytest.mark.parametrize("name", ["billing-api.read", "Billing_API.read", "BILLING_API_READ"])
def test_a_secret_has_its_slots_name(monkeypatch: pytest.MonkeyPatch, name: str):
    assert secret_of(name) is None
    monkeypatch.setenv("TALLYSTICK_SECRET_BILLING_API_READ", "s")
    assert secret_of(name) == "s"

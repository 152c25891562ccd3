"""Secrets go to their own tenant's provider, whoever names them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.sources import Asker
from server.secret_file import Secrets, read_secrets

HOST = "billing.example:443"
CANARY = "canary-secret"
OURS = Asker("default", is_publisher=True)


def written(folder: Path, content: object, mode: int = 0o600) -> Path:
    file = folder / "secrets.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)
    return file


def of(tenant: str, slot: str = "billing", **changes: Any) -> dict[str, Any]:
    return {tenant: {slot: {"host": HOST, "secret": CANARY, **changes}}}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALLYSTICK_SECRET_BILLING", raising=False)


@pytest.mark.parametrize(
    ("asker", "slot", "host", "secret"),
    [
        (Asker("acme", is_publisher=True), "billing", HOST, CANARY),
        (Asker("acme", is_publisher=False), "billing", HOST, CANARY),
        (Asker("acme", is_publisher=True), "billing", "evil.example:443", None),
        (Asker("acme", is_publisher=True), "billing", "billing.example:444", None),
        (Asker("acme", is_publisher=True), "Billing", HOST, None),
        (Asker("acme", is_publisher=True), "other", HOST, None),
        (Asker("other", is_publisher=True), "billing", HOST, None),
        (Asker("default", is_publisher=True), "billing", HOST, None),
    ],
)
def test_a_secret_is_one_tenants_for_one_host(
    tmp_path: Path, asker: Asker, slot: str, host: str, secret: str | None
):
    assert read_secrets(written(tmp_path, of("acme")))(asker, slot, host) == secret


def test_names_do_not_run_together(tmp_path: Path):
    secrets = read_secrets(written(tmp_path, of("a-b", "c")))
    assert secrets(Asker("a", is_publisher=True), "b-c", HOST) is None
    assert secrets(Asker("a", is_publisher=True), "b_c", HOST) is None


@pytest.mark.parametrize("slot", ["billing-api.read", "Billing_API.read", "BILLING_API_READ"])
def test_a_variable_has_its_slots_name(monkeypatch: pytest.MonkeyPatch, slot: str):
    assert read_secrets(None)(OURS, slot, HOST) is None
    monkeypatch.setenv("TALLYSTICK_SECRET_BILLING_API_READ", "s")
    assert read_secrets(None)(OURS, slot, HOST) == "s"


@pytest.mark.parametrize(
    "asker",
    [
        Asker("other", is_publisher=True),
        Asker("other", is_publisher=False),
        Asker("default", is_publisher=False),
    ],
)
def test_a_variable_is_for_what_the_default_tenant_publishes(asker: Asker):
    secrets = Secrets({}, {"TALLYSTICK_SECRET_BILLING": CANARY})
    assert secrets(OURS, "billing", HOST) == CANARY
    assert secrets(asker, "billing", HOST) is None


def test_the_file_says_all_of_a_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TALLYSTICK_SECRET_BILLING", "variable")
    secrets = read_secrets(written(tmp_path, of("default")))
    assert secrets(OURS, "billing", HOST) == CANARY
    assert secrets(OURS, "billing", "evil.example:443") is None


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int):
    file = written(tmp_path, of("acme"), mode)
    with pytest.raises(ValueError, match=re.escape(str(file))):
        read_secrets(file)


@pytest.mark.parametrize(
    "content",
    [
        "",
        CANARY,
        "[]",
        {"acme": CANARY},
        {"acme": {"billing": CANARY}},
        {"acme": {"billing": {"secret": CANARY}}},
        of("acme", secret=""),
        of("acme", secret=7),
        of("acme", host="billing.example"),
        of("acme", host="https://billing.example:443"),
        of("acme", host="user@billing.example:443"),
        of("acme", note=CANARY),
        f'{{"acme": {{}}, "acme": {{"{CANARY}": {{}}}}}}',
    ],
)
def test_what_is_no_file_of_secrets_is_refused_and_not_quoted(tmp_path: Path, content: object):
    file = written(tmp_path, content)
    with pytest.raises(ValueError, match="not a file of secrets") as raised:
        read_secrets(file)
    assert CANARY not in f"{raised.value!r} {raised.value.__cause__!r}"


def test_a_file_that_is_not_there_is_missed(tmp_path: Path):
    with pytest.raises(OSError, match=r"secrets\.json"):
        read_secrets(tmp_path / "secrets.json")


def test_secrets_do_not_show_themselves(tmp_path: Path):
    secrets = read_secrets(written(tmp_path, of("acme")))
    assert CANARY not in f"{secrets!r} {secrets.kept!r}"


SIGNING = "whsec_" + "QUFB" * 8


def signing(*secrets: str) -> dict[str, Any]:
    return {"acme": {"billing": {"webhook": list(secrets)}}}


def test_a_source_of_messages_has_the_secrets_that_it_signs_with(tmp_path: Path):
    secrets = read_secrets(written(tmp_path, signing(SIGNING, f"{SIGNING}QUFB")))
    assert secrets.signing("acme", "billing") == (SIGNING, f"{SIGNING}QUFB")
    for tenant, source in (("acme", "Billing"), ("other", "billing"), ("default", "billing")):
        assert secrets.signing(tenant, source) == ()
    asker = Asker("acme", is_publisher=True)
    assert secrets(asker, "billing", HOST) is None, "it is never sent"
    sent = read_secrets(written(tmp_path, of("acme")))
    assert sent.signing("acme", "billing") == (), "nor is one that is sent ever signed with"
    assert SIGNING not in repr(secrets)


@pytest.mark.parametrize(
    "secrets",
    [[], ["canary"], ["whsec_"], ["whsec_!!!!"], ["QUFB" * 8], ["whsec_QUFB"], [SIGNING] * 5, [7]],
    ids=str,
)
def test_what_is_no_secret_to_sign_with_is_refused(tmp_path: Path, secrets: list[Any]):
    with pytest.raises(ValueError, match="is not a file of secrets") as refused:
        read_secrets(written(tmp_path, signing(*secrets)))
    assert "QUFB" not in str(refused.value)
    assert refused.value.__cause__ is None

"""Keys on the command line: what is signed, and what is never told or overwritten."""

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tallystick.signing import PublicKey
from tallystick.tool_contract import Contract
from tests.signers import Signer

GRACE = Signer(1)
TOOL = "billing.send_invoice@1.0"
PATH = "/v1/contracts/billing.send_invoice/1.0"
SIGNATURE = {
    "key_id": GRACE.key_id,
    "name": "grace",
    "is_valid": True,
    "signature": "ab" * 64,
    "signed_at": "2026-01-02T03:04:05Z",
    "signed_by": "admin",
    "revoked_at": None,
}
POLICY = {"required": False, "required_at": None, "required_by": None, "unsigned": []}


def pem(signer: Signer = GRACE) -> bytes:
    return signer.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "grace.pem"
    file.write_bytes(pem())
    return str(file)


def document(file: str) -> dict:
    return dict(Contract.load(file).document)


# --- making a key ---------------------------------------------------------------------------------


def test_a_key_pair_is_made_for_its_owner_alone(run, wire, tmp_path: Path):
    file = tmp_path / "key.pem"
    made = json.loads(run("keys", "generate", str(file), "--json").stdout)
    key = load_pem_private_key(file.read_bytes(), password=None)
    public_key = key.public_key().public_bytes_raw().hex()  # pyright: ignore[reportAttributeAccessIssue]
    key_id = PublicKey.parse(public_key).id
    assert made == {"key_id": key_id, "public_key": public_key, "file": str(file)}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n"), "PKCS#8"
    assert wire.requests == []
    again = json.loads(run("keys", "generate", str(tmp_path / "other.pem"), "--json").stdout)
    assert again["public_key"] != public_key


def test_nothing_is_overwritten(run, tmp_path: Path):
    file, link = tmp_path / "key.pem", tmp_path / "link.pem"
    file.write_text("what was there")
    link.symlink_to(tmp_path / "elsewhere.pem")
    for there in (file, link):
        result = run("keys", "generate", str(there), env={"COLUMNS": "1000"})
        assert result.exit_code == 2
        assert "is there already" in result.stderr
    assert file.read_text() == "what was there"
    assert not (tmp_path / "elsewhere.pem").exists()
    assert run("keys", "generate", str(tmp_path / "missing" / "key.pem")).exit_code == 2


def test_a_private_key_is_never_told(run, wire, tmp_path: Path, write_contract):
    file = tmp_path / "key.pem"
    result = run("keys", "generate", str(file))
    wire.answer("POST /v1/contracts", {}, status=201)
    secret = "".join(file.read_text().splitlines()[1:-1])
    assert secret not in result.output
    broken = tmp_path / "broken.pem"
    broken.write_text(file.read_text().replace("PRIVATE", "PIRATE"))
    result = run("publish", write_contract(), "--sign-with", str(broken))
    assert result.exit_code == 2
    assert secret not in result.output
    assert wire.requests == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        pem()[:-30],
        GRACE.private_key.private_bytes_raw(),
        GRACE.private_key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        ),
        generate_private_key(SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
    ],
    ids=["empty", "nonsense", "cut", "raw", "encrypted", "of another kind"],
)
def test_what_is_no_key_signs_nothing(run, wire, tmp_path: Path, write_contract, content: bytes):
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    for command in (
        ("publish", write_contract(), "--sign-with", str(file)),
        ("sign", TOOL, "--key", str(file)),
        ("sign", TOOL, "--key", str(tmp_path / "missing.pem")),
    ):
        assert run(*command).exit_code == 2
    assert wire.requests == []


# --- signing --------------------------------------------------------------------------------------


def test_publishing_signs_what_is_sent(run, wire, key_file: str, write_contract):
    published = {"name": "x", "version": "1.0.0", "schema_hash": "", "published": True}
    wire.answer("POST /v1/contracts", published, status=201)
    first, second = write_contract("a.json"), write_contract("b.json", version="1.1")
    assert run("publish", first, second, "--sign-with", key_file).exit_code == 0
    for file, (_, body) in zip((first, second), wire.sent(), strict=True):
        assert body["signatures"] == [GRACE.sign(document(file))]
        assert body["document"] == document(file)


def test_a_published_version_is_signed_by_its_document(run, wire, key_file: str, write_contract):
    shown = document(write_contract())
    # What the registry says of the document is not what is signed.
    wire.answer(f"GET {PATH}", {"document": shown, "contract_digest": "sha256:" + "0" * 64})
    answer = {"name": shown["name"], "version": "1.0.0", "contract_digest": "sha256:"}
    wire.answer(f"POST {PATH}/signatures", {**answer, "signatures": [SIGNATURE]}, status=201)
    result = run("sign", TOOL, "--key", key_file)
    assert result.exit_code == 0
    assert wire.sent()[1] == (f"POST {PATH}/signatures", GRACE.sign(shown))
    assert GRACE.key_id in result.stdout


@pytest.mark.parametrize("changes", [{"name": "billing.send_invoicf"}, {"version": "1.1"}])
def test_a_document_that_was_swapped_is_not_signed(
    run, wire, key_file: str, write_contract, changes: dict[str, str]
):
    wire.answer(f"GET {PATH}", {"document": document(write_contract()) | changes})
    result = run("sign", TOOL, "--key", key_file)
    assert result.exit_code == 1
    assert "nothing was signed" in result.stderr
    assert "[signature_invalid]" in result.stderr
    assert [route for route, _ in wire.sent()] == [f"GET {PATH}"]


# --- requiring ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (["on"], {"required": True, "confirm": False}),
        (["on", "--confirm"], {"required": True, "confirm": True}),
        (["off"], {"required": False, "confirm": False}),
    ],
)
def test_requiring_says_whether_it_is_confirmed(run, wire, arguments, sent):
    wire.answer("POST /v1/signature-policy", POLICY)
    assert run("keys", "require", *arguments).exit_code == 0
    assert wire.sent() == [("POST /v1/signature-policy", sent)]


def test_without_a_word_the_policy_is_told(run, wire):
    stopped = {"required_at": "2026-01-02T03:04:05Z", "required_by": "ada", "unsigned": ["a@1.0.0"]}
    wire.answer("GET /v1/signature-policy", POLICY, {**stopped, "required": True})
    assert run("keys", "require").stdout == "Signatures are not required.\n"
    assert run("keys", "require").stdout.splitlines() == [
        "Signatures are required.",
        "  required at  2026-01-02 03:04:05Z",
        "  required by  ada",
        "Without a signature that counts, and so not to be resolved: a@1.0.0.",
    ]


def test_a_revoked_key_tells_what_stops(run, wire):
    revoked = {"key_id": GRACE.key_id, "name": "grace", "reason": "lost", "required": True}
    told = {"revoked_at": "2026-01-02T03:04:05Z", "unsigned": ["a@1.0.0", "b@2.0.0"]}
    wire.answer(f"POST /v1/keys/{GRACE.key_id}/revoke", {**revoked, **told})
    result = run("keys", "revoke", GRACE.key_id, "--reason", "lost")
    assert wire.sent()[0][1] == {"reason": "lost"}
    assert result.stdout.endswith("not to be resolved: a@1.0.0, b@2.0.0.\n")


def test_a_list_tells_what_is_signed_by_a_key_that_counts(run, wire):
    contract = {
        "name": "billing.send_invoice",
        "version": "1.0.0",
        "state": "ACTIVE",
        "schema_hash": "sha256:" + "a" * 64,
        "effect_class": "PURE",
    }
    revoked = SIGNATURE | {"is_valid": False, "revoked_at": "2026-01-03T03:04:05Z"}
    for signatures, told in (
        ([SIGNATURE], True),
        ([revoked, SIGNATURE], True),
        ([revoked], False),
        ([], False),
    ):
        wire.answers.clear()
        wire.answer("GET /v1/contracts", {"contracts": [contract | {"signatures": signatures}]})
        assert ("aaaa  signed" in run("list").stdout) is told

"""Publishers' keys: make one, trust one, sign with one, and require signatures."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signatures, views
from cli.command import NOWHERE, Invocation, ReasonOption, ToolVersionArgument, command
from cli.connection import JsonObject
from tallystick.errors import SignatureInvalid
from tallystick.signing import PublicKey, statement
from tallystick.tool_contract import Contract, Version

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

app = typer.Typer(no_args_is_help=True, help="The keys that contracts are signed with.")
signing = typer.Typer()

KeyFile = Annotated[Path, typer.Option("--key", help="The private key that `generate` made.")]


class Wanted(StrEnum):
    """Whether signatures are to be required."""

    ON = "on"
    OFF = "off"


@app.command()
@command(NOWHERE)
def generate(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="Where the private key goes.")],
) -> None:
    """Make a key pair: the private key in a file for its owner alone, the public key shown.

    A file that is there is never overwritten. Nothing is sent anywhere.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private_key = Ed25519PrivateKey.generate()
    _write(
        file,
        private_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    public_key = _public_key(private_key)
    answer = {"key_id": public_key.id, "public_key": str(public_key), "file": str(file)}
    invocation.show(answer, views.fields)


@app.command()
@command()
async def add(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    public_key: Annotated[str, typer.Argument(help="The public key: 64 hexadecimal digits.")],
) -> None:
    """Trust a publisher's key from now on."""
    body = {"name": name, "public_key": public_key}
    async with invocation.connect() as api:
        answer = await api.post("keys", body=body)
    invocation.show(answer, views.fields)


@app.command("list")
@command()
async def list_keys(invocation: Invocation) -> None:
    """List the keys, also those that were revoked."""
    async with invocation.connect() as api:
        answer = await api.get("keys")
    invocation.show(answer, signatures.keys)


@app.command()
@command()
async def revoke(
    invocation: Invocation,
    key_id: Annotated[str, typer.Argument(help="The key's id, ed25519:...")],
    reason: ReasonOption,
) -> None:
    """Stop to trust a key, for ever: its signatures stay, and count no more."""
    async with invocation.connect() as api:
        answer = await api.post("keys", key_id, "revoke", body={"reason": reason})
    invocation.show(answer, signatures.revoked_key)


@app.command()
@command()
async def require(
    invocation: Invocation,
    wanted: Annotated[Wanted | None, typer.Argument(help="Without it, say what holds.")] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Let published versions without a signature stop.")
    ] = False,
) -> None:
    """Let only signed contracts be published and resolved, or let unsigned ones be so again."""
    async with invocation.connect() as api:
        if wanted is None:
            answer = await api.get("signature-policy")
        else:
            body = {"required": wanted is Wanted.ON, "confirm": confirm}
            answer = await api.post("signature-policy", body=body)
    invocation.show(answer, signatures.policy)


@signing.command(rich_help_panel="Contracts")
@command()
async def sign(invocation: Invocation, tool: ToolVersionArgument, key: KeyFile) -> None:
    """Sign a published version. Look at it first: `registry show`."""
    private_key = read_private_key(key)
    async with invocation.connect() as api:
        shown = await api.get("contracts", *tool)
        # The digest is taken of the document itself: what the registry says of it proves nothing.
        contract = Contract.parse(shown["document"])
        if (contract.name, contract.version) != (tool.name, Version.parse(tool.version)):
            raise SignatureInvalid(
                f"The registry shows {contract.name}@{contract.version} as"
                f" {tool.name}@{tool.version}: nothing was signed."
            )
        body = signature_of(contract, private_key)
        answer = await api.post("contracts", *tool, "signatures", body=body)
    invocation.show(answer, signatures.signed)


def read_private_key(file: Path) -> "Ed25519PrivateKey":
    """Read a private key. Raises typer.BadParameter, and never tells what the file holds."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be read: {fault.strerror}.") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise typer.BadParameter(f"{file} holds no unencrypted Ed25519 private key in PEM.")
    return key


def signature_of(contract: Contract, private_key: "Ed25519PrivateKey") -> JsonObject:
    """Return a signature of a contract, as the wire has it."""
    signature = private_key.sign(statement(contract.contract_digest))
    return {"key_id": _public_key(private_key).id, "signature": signature.hex()}


def _public_key(private_key: "Ed25519PrivateKey") -> PublicKey:
    return PublicKey(private_key.public_key().public_bytes_raw())


def _write(file: Path, content: bytes) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise typer.BadParameter(f"{file} is there already, and no key is overwritten.") from None
    except OSError as fault:
        raise typer.BadParameter(f"{file} cannot be written: {fault.strerror}.") from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)

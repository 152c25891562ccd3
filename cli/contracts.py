"""Contracts: publish, look up, resolve, and bind to a rotated credential."""

from pathlib import Path
from typing import Annotated

import typer

from cli import keys, views
from cli.command import Invocation, ReasonOption, ToolVersionArgument, command
from cli.connection import JsonObject
from tallystick.effect_class import EffectClass
from tallystick.errors import Refusal
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

app = typer.Typer()


@app.command(rich_help_panel="Contracts")
@command()
async def publish(
    invocation: Invocation,
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True, dir_okay=False, readable=True, help="Contracts, in YAML or JSON."
        ),
    ],
    reviewer: Annotated[
        str | None, typer.Option(help="Who signs off a change that needs a review.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why the reviewer signs it off.")] = None,
    sign_with: Annotated[
        Path | None, typer.Option(help="A private key to sign the contracts with.")
    ] = None,
) -> None:
    """Publish contracts; one that is published already, just so, is left as it is."""
    if (reviewer is None) != (reason is None):
        raise typer.BadParameter("A review is --reviewer and --reason together.")
    review = None if reviewer is None else {"reviewer": reviewer, "reason": reason}
    contracts = [_load(file) for file in files]
    key = None if sign_with is None else keys.read_private_key(sign_with)
    published: list[JsonObject] = []
    try:
        async with invocation.connect() as api:
            for contract in contracts:
                body = {
                    "document": dict(contract.document),
                    "review": review,
                    "signatures": None if key is None else [keys.signature_of(contract, key)],
                }
                published.append(await api.post("contracts", body=body))
    finally:
        # A refusal in the middle does not undo what came before it.
        if published:
            invocation.show({"contracts": published}, views.publications)


def _load(file: Path) -> Contract:
    try:
        return Contract.load(file)
    except Refusal as refusal:
        raise type(refusal)(
            f"{file}: {refusal.detail}", pointer=refusal.pointer, facts=refusal.facts
        ) from refusal


@app.command(rich_help_panel="Contracts")
@command()
async def show(invocation: Invocation, tool: ToolVersionArgument) -> None:
    """Show one version: its state, digests, credential and document."""
    async with invocation.connect() as api:
        answer = await api.get("contracts", *tool)
    invocation.show(answer, views.contract)


@app.command("list", rich_help_panel="Contracts")
@command()
async def list_contracts(
    invocation: Invocation,
    name: Annotated[str | None, typer.Option(help="Only the versions of this tool.")] = None,
    state: Annotated[
        Lifecycle | None, typer.Option(case_sensitive=False, help="Only versions in this state.")
    ] = None,
) -> None:
    """List the published contracts."""
    async with invocation.connect() as api:
        answer = await api.get("contracts", name=name, state=state)
    invocation.show(answer, views.contracts)


@app.command(rich_help_panel="Contracts")
@command()
async def resolve(
    invocation: Invocation,
    tool: ToolVersionArgument,
    schema_hash: Annotated[str | None, typer.Option(help="The full hash, sha256:...")] = None,
    capability: Annotated[
        list[str] | None, typer.Option(help="A capability that is asked for; may be repeated.")
    ] = None,
    effect_class: Annotated[
        EffectClass | None, typer.Option(case_sensitive=False, help="What a call does.")
    ] = None,
    credential_version: Annotated[
        int | None, typer.Option(min=0, help="The credential's version; 0 where there is none.")
    ] = None,
) -> None:
    """Present a tuple, and see whether it resolves.

    What is not given is taken from the registry's own reference, and the answer says so.
    """
    given = {
        "schema_hash": schema_hash,
        "capabilities": capability or None,
        "effect_class": effect_class,
        "credential_version": credential_version,
    }
    assumed = [part for part, value in given.items() if value is None]
    async with invocation.connect() as api:
        contract = await api.get("contracts", *tool)
        chosen = {part: value for part, value in given.items() if value is not None}
        presented = {**contract["reference"], **chosen}
        answer = await api.post("resolve", body=presented)
    invocation.show({**answer, "presented": presented, "assumed": assumed}, views.resolution)


@app.command(rich_help_panel="Contracts")
@command()
async def attest(invocation: Invocation, tool: ToolVersionArgument, reason: ReasonOption) -> None:
    """Confirm a contract under its rotated credential, so that it resolves again."""
    async with invocation.connect() as api:
        answer = await api.post("contracts", *tool, "attest", body={"reason": reason})
    invocation.show(answer, views.fields)

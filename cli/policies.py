"""Policies: which calls may run, and for whom it is decided."""

from pathlib import Path
from typing import Annotated

import typer

from cli import policy_views
from cli.command import Invocation, command
from cli.connection import Api, JsonObject
from tallystick.errors import NotFound

app = typer.Typer(no_args_is_help=True, help="Which calls may run, and for whom it is decided.")

PolicyArgument = Annotated[str, typer.Argument(help="The policy's id, as in safe-refund.")]
ForOption = Annotated[
    str | None, typer.Option("--for", metavar="PRINCIPAL", help="Whose calls it decides of.")
]
ForEverybodyOption = Annotated[
    bool, typer.Option("--for-everybody", help="It decides of the calls of all who have none.")
]

_EVERYBODY = "*"


@app.command()
@command()
async def publish(
    invocation: Invocation,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="In YAML or JSON.")
    ],
    principal: ForOption = None,
    for_everybody: ForEverybodyOption = False,
) -> None:
    """Publish a policy under its id, as the next revision; and assign it, if it is said to whom.

    What says the same as the last revision is left as it is.
    """
    assignee = _assignee(principal, for_everybody)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not UTF-8.") from None
    async with invocation.connect() as api:
        answer = await api.post("policies", body={"text": text})
        try:
            if assignee is not None:
                answer["assignment"] = await _assign(api, answer["policy"], assignee)
        finally:
            # It is published, whatever becomes of the assignment.
            invocation.show(answer, policy_views.published)


@app.command()
@command()
async def show(
    invocation: Invocation,
    policy: Annotated[str | None, typer.Argument(help="Without it, the one in force.")] = None,
    revision: Annotated[int | None, typer.Option(min=1, help="Without it, the last one.")] = None,
    principal: Annotated[
        str | None,
        typer.Option("--for", metavar="PRINCIPAL", help="The one in force for another than you."),
    ] = None,
) -> None:
    """Show a policy as it was written: the one of that id, or the one in force for you."""
    if policy is None and revision is not None:
        raise typer.BadParameter("--revision is of the policy that is named before it.")
    if policy is not None and principal is not None:
        raise typer.BadParameter("--for asks which policy is in force: name none.")
    async with invocation.connect() as api:
        policy = policy or await _in_force(api, principal)
        answer = await api.get("policies", policy, revision=revision)
    invocation.show(answer, policy_views.policy)


@app.command("list")
@command()
async def list_policies(invocation: Invocation) -> None:
    """List the policies, and whose calls each decides of."""
    async with invocation.connect() as api:
        answer = await api.get("policies")
    invocation.show(answer, policy_views.policies)


@app.command()
@command()
async def assign(
    invocation: Invocation,
    policy: PolicyArgument,
    principal: ForOption = None,
    for_everybody: ForEverybodyOption = False,
) -> None:
    """Let a policy decide of somebody's calls, in the place of any other one."""
    assignee = _needed(_assignee(principal, for_everybody))
    async with invocation.connect() as api:
        answer = await _assign(api, policy, assignee)
    invocation.show(answer, policy_views.assignment)


@app.command()
@command()
async def unassign(
    invocation: Invocation,
    policy: PolicyArgument,
    principal: ForOption = None,
    for_everybody: ForEverybodyOption = False,
) -> None:
    """Take a policy back from whom it is assigned to."""
    assignee = _needed(_assignee(principal, for_everybody))
    async with invocation.connect() as api:
        await api.delete("policies", policy, "assignments", principal=assignee)
    answer = {"policy": policy, "principal": assignee, "assigned": False}
    invocation.show(answer, policy_views.unassignment)


def _assignee(principal: str | None, for_everybody: bool) -> str | None:
    if principal is not None and for_everybody:
        raise typer.BadParameter("Say --for PRINCIPAL or --for-everybody, not both.")
    return _EVERYBODY if for_everybody else principal


def _needed(assignee: str | None) -> str:
    if assignee is None:
        raise typer.BadParameter("Say whom: --for PRINCIPAL or --for-everybody.")
    return assignee


async def _assign(api: Api, policy: str, assignee: str) -> JsonObject:
    return await api.post("policies", policy, "assignments", body={"principal": assignee})


async def _in_force(api: Api, principal: str | None) -> str:
    principal = principal or (await api.get("whoami"))["principal"]
    found = (await api.get("policies", in_force_for=principal))["policies"]
    if not found:
        raise NotFound(f"No policy is in force for {principal}.")
    return found[0]["policy"]

"""The `registry` command: every group under one root."""

import os
import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from cli import (
    approvals,
    audit,
    compare,
    contracts,
    credentials,
    effects,
    grants,
    keys,
    lock,
    policies,
    policy_files,
    quarantine,
    rollout,
    runs,
    serve,
    shares,
    tenants,
    tokens,
    views,
)
from cli.command import NOWHERE, ExitCode, Invocation, command
from cli.connection import JsonObject
from cli.render import Output

app = typer.Typer(
    name="registry",
    no_args_is_help=True,
    # A traceback with local variables could show a token.
    pretty_exceptions_enable=False,
    help="Versioned tool contracts, and a ledger of what was called.",
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 3 unreachable.",
)
app.add_typer(serve.app)
app.add_typer(contracts.app)
app.add_typer(compare.app)
app.add_typer(lock.app)
app.add_typer(keys.signing)
app.add_typer(rollout.app)
app.add_typer(effects.app, name="effects", rich_help_panel="Effects")
app.add_typer(quarantine.app, name="quarantine", rich_help_panel="Effects")
app.add_typer(approvals.app, name="approvals", rich_help_panel="Effects")
app.add_typer(runs.app, name="runs", rich_help_panel="Effects")
app.add_typer(credentials.app, name="credentials", rich_help_panel="Access")
app.add_typer(audit.app, name="audit", rich_help_panel="Access")
app.add_typer(grants.app, name="grants", rich_help_panel="Access")
app.add_typer(keys.app, name="keys", rich_help_panel="Access")
policies.app.add_typer(policy_files.app)
app.add_typer(policies.app, name="policy", rich_help_panel="Policies")
app.add_typer(shares.app)
app.add_typer(tokens.app, name="tokens", rich_help_panel="Access")
app.add_typer(tenants.app, name="tenants", rich_help_panel="Access")


def main() -> None:
    """Run the command; the process ends with an `ExitCode`."""
    try:
        try:
            app(prog_name="registry")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would flush once more at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.REFUSED)


@app.command("version", rich_help_panel="Service")
@command(NOWHERE)
def show_version(invocation: Invocation) -> None:
    """Say which release this is."""
    invocation.show(_version(), views.version)


@app.command(rich_help_panel="Access")
@command()
async def whoami(invocation: Invocation) -> None:
    """Say whom the service takes you for."""
    async with invocation.connect() as api:
        answer = await api.get("whoami")
    invocation.show(answer, views.fields)


def _version() -> JsonObject:
    return {"version": installed_version("tallystick-server")}


def _print_version(wanted: bool) -> None:
    if wanted:
        Output(as_json=False).show(_version(), views.version)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Versioned tool contracts, and a ledger of what was called."""

"""The pages for whoever is on call: what they show is what the command and the contract take."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from cli.app import app
from kernel.roles import Role
from ledger.quarantine import Cause
from ledger.state import State
from ledger.webhook import check_secret
from tallystick.tool_contract import Contract
from tests.builders import a_contract

DOCS = Path(__file__).parents[3] / "docs"
RUNBOOK, EVIDENCE = ((DOCS / f"{page}.md").read_text() for page in ("runbook", "evidence"))
BLOCKS = re.findall(r"```bash\n(.*?)```", RUNBOOK + EVIDENCE, re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]
NAMED = sorted({*re.findall(r"`(registry [^`]+)`", RUNBOOK + EVIDENCE)})


def meant(line: str) -> tuple[Any, str, list[str]]:
    """Return the command that a line means, its name, and what the line gives it."""
    program, *words = shlex.split(line, comments=True)
    assert program == "registry"
    command: Any = typer.main.get_command(app)
    name = program
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        command = command.commands[name]
    return command, name, words


def test_there_is_something_to_hold():
    assert len(LINES) >= 5
    assert len(NAMED) >= 10


@pytest.mark.parametrize("line", LINES)
def test_a_command_that_is_shown_can_be_given(line: str):
    command, name, words = meant(line)
    assert command.make_context(name, words).params


@pytest.mark.parametrize("line", NAMED)
def test_a_command_that_is_named_is_there_with_its_options(line: str):
    command, _, words = meant(line)
    taken = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= taken


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_explained(cause: Cause):
    assert f"**`{cause}`**" in RUNBOOK


def test_every_state_says_what_evidence_does_to_it():
    told = {
        word for row in re.findall(r"^\|(.*?)\|", EVIDENCE, re.MULTILINE) for word in row.split("`")
    }
    assert told >= {*State}


def test_roles_are_called_what_they_are():
    assert {*re.findall(r"role `(\w+)`", RUNBOOK + EVIDENCE)} <= {*Role}


def test_the_examples_are_what_they_say():
    document, listing = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", EVIDENCE, re.DOTALL))
    contract = Contract.parse(a_contract(evidence=document["evidence"] | listing))
    assert contract.evidence is not None
    assert contract.evidence.webhook is not None
    assert contract.evidence.listing is not None
    (secrets,) = re.findall(r"```json\n(.*?)```", EVIDENCE, re.DOTALL)
    for secret in json.loads(secrets)["default"]["acme"]["webhook"]:
        check_secret(secret.replace("...", "A" * 32))
    (project,) = re.findall(r"```toml\n(.*?)```", EVIDENCE, re.DOTALL)
    assert "tallystick.evidence_sources" in tomllib.loads(project)["project"]["entry-points"]
    (plug_in,) = re.findall(r"```python\n(.*?)```", EVIDENCE, re.DOTALL)
    exec(compile(plug_in, "docs/evidence.md", "exec"), {})

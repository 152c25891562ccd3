"""The whole OpenAPI document, asked by every role what it allows and what it does not.

Schemathesis runs in an environment of its own, which `make setup` makes.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernel.roles import Role
from server.home import admin_token_file
from tests.api import Api
from tests.builders import ARGUMENTS, a_contract, a_contract_of, a_policy
from tests.databases import database

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv" / "schemathesis" / "bin" / "schemathesis"
SEED = int(os.environ.get("SCHEMATHESIS_SEED", "1"))
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "every_refusal_is_a_problem",
)
START_SECONDS_MAX = 60
RUN_SECONDS_MAX = 240


@dataclass(frozen=True)
class Running:
    """A service on loopback: a token for each role, and what is there to be asked about."""

    url: str
    tokens: dict[Role, str]
    known: dict[str, Any]


@pytest.fixture(scope="module")
def service(
    postgres_url: str,
    template_database: str,
    database_owner: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """Run a service of this module's own."""
    folder = tmp_path_factory.mktemp("schemathesis")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    with (
        database(postgres_url, template=template_database, owner=database_owner) as database_url,
        (folder / "log").open("w+b") as log,
        subprocess.Popen(
            [sys.executable, "-m", "cli", "serve", "--port", port],
            cwd=ROOT,
            env=environment(DATABASE_URL=database_url, TALLYSTICK_HOME=str(folder / "home")),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield asyncio.run(settled(url, folder / "home"))
        finally:
            process.terminate()
            process.wait(60)
            log.seek(0)
            told = log.read().decode()
        assert "failed" not in told, told


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without what would steer the service."""
    foreign = ("TALLYSTICK_", "DATABASE_URL")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    unhurried = {"RATE_PER_SECOND": "1e6", "GUESSES_PER_MINUTE": "1000000"}
    return kept | {f"TALLYSTICK_{name}": text for name, text in unhurried.items()} | more


async def settled(url: str, home: Path) -> Running:
    """Wait for the service; make a token for each role, a contract and an effect."""
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
        async with asyncio.timeout(START_SECONDS_MAX):
            while not await is_ready(http):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.1)
        admin = admin_token_file(home).read_text().strip()
        http.headers["Authorization"] = f"Bearer {admin}"
        api = Api(http, None)
        made = {
            role: (await api.ask("POST", "/v1/tokens", {"name": role, "roles": [role]})).body
            for role in Role
        }
        spare = (await api.ask("POST", "/v1/tokens", {"name": "spare", "roles": ["runtime"]})).body
        reference = await api.publish(a_contract())
        effect = await api.dispatched(reference)
        asks = await api.publish(a_contract(name="billing.ask", approval="always"))
        asked = (await api.plan(asks, effect="asks")).body
        policy = (await api.ask("POST", "/v1/policies", {"text": a_policy()})).body
        # What one person says of it is a proposal: it stays quarantined, whatever is asked.
        once = await api.dispatched(await api.publish(a_contract_of("UNKNOWN")), effect="once")
        await api.report(once, "succeeded")
        await api.tell(once, "rejected")
        assert await api.state(once) == "QUARANTINED"
    path = {
        "name": reference["name"],
        "version": reference["version"],
        "effect_id": effect["effect_id"],
        "approval_id": asked["effect_id"],
        "run": "run-1",
        "worker_id": api.worker_id,
        "policy": policy["policy"],
        "token_id": spare["token_id"],
    }
    plan = {"tool": reference, "arguments": ARGUMENTS, "lease": None}
    tokens = {role: token["token"] for role, token in made.items()}
    known = {"path": path, "quarantined": once["effect_id"], "plan": plan}
    return Running(url, tokens, known)


async def is_ready(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).is_success
    except httpx.TransportError:
        return False


@pytest.mark.timeout(2 * RUN_SECONDS_MAX)
@pytest.mark.parametrize("role", Role)
def test_every_answer_is_documented(service: Running, role: Role, tmp_path: Path):
    """The admin may do all, and so is asked all kinds of questions; the others mostly may not."""
    is_admin = role is Role.ADMIN
    done = subprocess.run(
        [
            PROGRAM,
            "run",
            f"{service.url}/openapi.json",
            f"--header=Authorization: Bearer {service.tokens[role]}",
            f"--checks={','.join(CHECKS)}",
            f"--phases={'examples,coverage,fuzzing' if is_admin else 'fuzzing'}",
            f"--max-examples={5 if is_admin else 2}",
            f"--seed={SEED}",
            # In two threads, CPython 3.11 may fail to parse one text for both of them.
            "--workers=1",
            # How fast the machine is decides nothing: not how long generating takes, nor whether
            # a kept connection was closed in the moment in which it was used again.
            "--suppress-health-check=all",
            "--request-timeout=60",
            "--request-retries=2",
            "--continue-on-failure",
            "--warnings=off",
            "--no-color",
        ],
        cwd=tmp_path,  # it keeps a cache there
        env=environment(
            PYTHONPATH=str(ROOT / "tests" / "schemathesis"),
            SCHEMATHESIS_HOOKS="hooks",
            TALLYSTICK_KNOWN=json.dumps(service.known),
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    print(f"SCHEMATHESIS_SEED={SEED}", done.stdout, done.stderr, sep="\n")
    assert done.returncode == 0

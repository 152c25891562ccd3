"""A registry that is played: it answers what a test says, and keeps what it was asked."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import pytest
from typer.testing import CliRunner, Result

from cli.app import app

TOKEN = "the-token-of-a-test"
URL = "http://registry.test"


@dataclass
class Wire:
    """Answers a request by "METHOD /path"; several answers are given one after the other."""

    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)

    def answer(self, route: str, *bodies: Any, status: int = 200) -> None:
        self.answers.setdefault(route, []).extend((status, body) for body in bodies)

    def refuse(self, route: str, code: str, *, status: int = 409, **members: Any) -> None:
        problem = {"detail": f"This is {code}.", "code": code, "status": status, **members}
        self.answer(route, problem, status=status)

    def sent(self) -> list[tuple[str, Any]]:
        return [
            (f"{request.method} {request.url.path}", json.loads(request.content or "null"))
            for request in self.requests
        ]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self.answers[f"{request.method} {request.url.path}"]
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        return httpx.Response(status, json=body)


class Run(Protocol):
    def __call__(self, *args: str, env: Mapping[str, str | None] | None = None) -> Result: ...


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def run(wire: Wire) -> Run:
    """Run the command against the played registry, on a terminal of 80 columns."""

    def run_it(*args: str, env: Mapping[str, str | None] | None = None) -> Result:
        defaults = {
            "COLUMNS": "80",
            "TALLYSTICK_HOME": None,
            "TALLYSTICK_TOKEN": TOKEN,
            "TALLYSTICK_URL": URL,
        }
        result = CliRunner().invoke(
            app,
            args,
            env={**defaults, **(env or {})},
            catch_exceptions=False,
            obj=httpx.MockTransport(wire),
        )
        assert TOKEN not in result.output
        return result

    return run_it


@pytest.fixture
def write_contract(tmp_path: Any) -> Callable[..., str]:
    """Write a contract that is valid but for the fields given, and return its file."""

    def write(name: str = "send.json", **fields: Any) -> str:
        document = {
            "name": "billing.send_invoice",
            "version": "1.0",
            "description": "Sends an invoice.",
            "input_schema": {"type": "object", "properties": {"invoice": {"type": "string"}}},
            "capabilities": ["invoice:write:{tenant}"],
            "effect_class": "UNKNOWN",
            **fields,
        }
        file = tmp_path / name
        file.write_text(json.dumps(document), encoding="utf-8")
        return str(file)

    return write

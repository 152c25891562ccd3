"""Makes contracts of the tools, and adds what a publisher would say of their identifiers.

WRITE changes the store; READ, GENERIC and what has no kind do not. A write takes no idempotency
key, so that a second call is a second effect.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tallystick.tool_contract import Contract
from tests.conformance.tau.corpus import Tool, tools

FOLDER = Path(__file__).parent / "identifiers"


@cache
def contracts(domain: str) -> dict[str, Contract]:
    """Return the contract of each tool of a domain, by name."""
    said = yaml.safe_load((FOLDER / f"{domain}.yaml").read_text(encoding="utf-8"))
    return {tool.name: _contract(tool, domain, said) for tool in tools(domain)}


def _contract(tool: Tool, domain: str, said: dict[str, Any]) -> Contract:
    takes = tool.parameters["properties"]
    is_write = tool.kind == "WRITE"
    return Contract.of(
        name=tool.name,
        version="1.0",
        description=tool.description,
        input_schema=tool.parameters,
        effect_class="NON_RETRYABLE" if is_write else "PURE",
        capabilities=[f"{domain}:{'write' if is_write else 'read'}:{{tenant}}"],
        ownership=[
            {"argument": f"/{name}", **of}
            for name, of in said["ownership"].items()
            if name in takes
        ]
        or None,
        returned=[
            {"argument": f"/{place}", "tools": by}
            for place, by in said["returned"].items()
            if place.split("/")[0] in takes
        ]
        or None,
        errors=[
            {"code": code, "meaning": meaning, "retryable": False}
            for code, meaning in said["errors"].get(tool.name, {}).items()
        ]
        or None,
    )

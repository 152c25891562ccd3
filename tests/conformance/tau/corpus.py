"""The tools of tau-bench and the gold calls of tau2-bench, read in place from the corpus.

A gold list is what a perfect agent calls for one task, in order. Some lists are whole runs, others
only the calls that change something.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[3]
CORPUS: Final = ROOT.parent / "shared" / "corpus"
FOLDERS: Final = (CORPUS / "tau-bench", CORPUS / "tau2-bench")
DOMAINS: Final = ("retail", "airline", "telecom")


@dataclass(frozen=True, slots=True)
class GoldCall:
    """One call of a gold list.

    Args:
        id: Its name in tau2-bench, such as `64_6`.
        tool: The tool's name.
        arguments: Its arguments.
    """

    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a domain, with its gold calls in order."""

    domain: str
    id: str
    calls: tuple[GoldCall, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as the corpus describes it.

    Args:
        name: Its name.
        description: What a model reads.
        parameters: The JSON Schema of its arguments.
        kind: READ, WRITE or GENERIC; None if the corpus does not say.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    kind: str | None


def is_there() -> bool:
    """Return whether the corpus has both benchmarks."""
    return all(folder.is_dir() for folder in FOLDERS)


@cache
def tools(domain: str) -> tuple[Tool, ...]:
    """Return the tools of a domain: in OpenAI form, or, of telecom, signatures of Python."""
    if domain == "telecom":
        described = _read("tau2-bench/tool_kinds.json")["domains"]["telecom"]
        return tuple(
            Tool(name, each["docstring"], _parameters(each), each["kind"])
            for name, each in described.items()
        )
    found = _read(f"tau-bench/{domain}_tools.json")
    functions = [each["function"] for each in found["tools"]]
    kinds = found["effect_kind_from_tau2"]
    return tuple(
        Tool(each["name"], each["description"], each["parameters"], kinds[each["name"]])
        for each in functions
    )


@cache
def tasks(domain: str) -> tuple[Task, ...]:
    """Return the tasks of a domain that have gold calls."""
    calls: dict[str, list[GoldCall]] = {}
    for each in _read(f"tau2-bench/{domain}_gold_calls.json")["gold_calls"]:
        call = GoldCall(each["action_id"], each["name"], each["arguments"])
        calls.setdefault(each["task_id"], []).append(call)
    return tuple(Task(domain, task, tuple(found)) for task, found in calls.items())


_SCHEMAS: Final = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "Union[NetworkModePreference, str]": {"type": "string"},
    "Union[APNSettings, dict]": {"type": "object"},
}


def _parameters(described: dict[str, Any]) -> dict[str, Any]:
    annotations: dict[str, str] = described["annotations"]
    return {
        "type": "object",
        "properties": {name: _SCHEMAS[each] for name, each in annotations.items()},
        "required": described["required"],
    }


def _read(name: str) -> dict[str, Any]:
    return json.loads((CORPUS / name).read_text(encoding="utf-8"))

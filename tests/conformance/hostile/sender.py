"""The process that sends a corpus: ``python sender.py CORPUS DATABASE_URL HOME``.

It runs the application within a limited address space, and prints a line of JSON for each case: the
answers, as status and code, and how far memory has grown. What else happens ends it with a trace.
"""

import asyncio
import json
import resource
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from tallystick.canonical import MalformedJson
from tallystick.document import parse_document
from tallystick.errors import Refusal
from tests.api import Api, running
from tests.builders import a_contract
from tests.problems import problem_in

ADDRESS_SPACE_BYTES: Final = 2 * 2**30
FOLDER: Final = Path(__file__).parent

Answers = AsyncIterator[tuple[int, str]]
HOLE: Final = "what is sent"
WORKER: Final = "019ad000-0000-7000-8000-000000000002"


def read(corpus: str) -> dict[str, str]:
    """Read a corpus of texts.

    A text is a list of pieces: a string, or one with the number of times that it is repeated, in
    which ``%d`` stands for how many there were before it.
    """
    cases = json.loads((FOLDER / f"{corpus}.json").read_text(encoding="utf-8"))
    return {name: "".join(map(expanded, pieces)) for name, pieces in cases.items()}


def expanded(piece: str | tuple[str, int]) -> str:
    if isinstance(piece, str):
        return piece
    text, count = piece
    return (
        "".join(text.replace("%d", str(n)) for n in range(count)) if "%d" in text else text * count
    )


def filled(body: Any, text: str) -> bytes:
    """Write a body with the text, be it JSON or not, in its hole."""
    return json.dumps(body).replace(json.dumps(HOLE), text).encode()


async def send(api: Api, path: str, content: bytes) -> tuple[int, str]:
    headers = {"Content-Type": "application/json"}
    response = await api.http.post(path, content=content, headers=headers)
    if response.is_success:
        return response.status_code, ""
    return response.status_code, problem_in(response)["code"]


# --- what is done with each text ------------------------------------------------------------------

VALUES: Final[tuple[Any, ...]] = (
    {},
    {"a": "a" * 20_000 + "!"},
    {"a": list(range(200)), "left": {"left": {"right": {}}}},
    {"p7": 1, "a7": [], "b": {"a": {"a": {"b": {}}}}},
)


async def schemas(api: Api, name: str, text: str) -> Answers:
    """Publish it as the schema of arguments and of results, call the tool, and compare it."""
    for field in ("input_schema", "output_schema"):
        tool = f"hostile.{field}_{name.encode().hex()[:100]}"
        document = a_contract(name=tool, version="1.0", **{field: HOLE})
        status, code = await send(api, "/v1/contracts", filled({"document": document}, text))
        yield status, code
        if status == 201:
            reference = (await api.ask("GET", f"/v1/contracts/{tool}/1.0")).body["reference"]
            for number, value in enumerate(VALUES if field == "input_schema" else ()):
                plan = {"run": "run", "effect": f"{tool}-{number}", "tool": reference}
                yield await send(api, "/v1/effects", filled(plan | {"arguments": value}, ""))
    for old, new in ((HOLE, {"type": "object"}), ({"maxProperties": 3}, HOLE)):
        yield await send(api, "/v1/compare", filled({"old": old, "new": new}, text))


TOOLS: Final[dict[str, Any]] = {
    "hostile.open": {"type": "object"},
    "hostile.strict": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "pattern": "^(a+)+$", "maxLength": 10**6},
            "number": {"type": "number", "multipleOf": 1e-300},
            "list": {"type": "array", "uniqueItems": True, "contains": {"const": -1}},
        },
        "additionalProperties": False,
    },
    "hostile.dear": {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/a0"},
        "$defs": {
            f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
            for n in range(14)
        }
        | {"a14": {"items": {"$ref": "#/$defs/a1"}, "x-sensitive": False}},
    },
    "hostile.tree": {
        "type": "object",
        "properties": {
            "left": {"$ref": "#"},
            "right": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
            "all": {"type": "array", "items": {"oneOf": [{"$ref": "#"}, {"type": "null"}]}},
            "secret": {"x-sensitive": True},
        },
        "unevaluatedProperties": {"$ref": "#"},
    },
}


async def arguments(api: Api, name: str, text: str) -> Answers:
    """Call tools with it, and report it as the result of a call that was dispatched."""
    for tool, schema in TOOLS.items():
        document = a_contract(name=tool, version="1.0", input_schema=schema, output_schema=schema)
        reference = await api.publish(document)
        plan: dict[str, Any] = {"run": "run", "effect": f"{tool} {name}", "tool": reference}
        yield await send(api, "/v1/effects", filled(plan | {"arguments": HOLE}, text))
        dispatch = {"worker_id": WORKER, "nonce": WORKER}
        plan |= {"effect": f"{tool} {name} done", "arguments": {}, "dispatch": dispatch}
        effect = (await api.ask("POST", "/v1/effects", plan)).body
        outcome = {"worker_id": WORKER, "fence": 1, "outcome": "succeeded", "result": HOLE}
        path = f"/v1/effects/{effect['effect_id']}/outcome"
        yield await send(api, path, filled(outcome, text))


async def bodies(api: Api, _name: str, text: str) -> Answers:
    """Send it to every route that reads much."""
    for path in ("/v1/contracts", "/v1/compare", "/v1/effects", "/v1/resolve", "/v1/keys"):
        yield await send(api, path, text.encode())


async def yaml(_api: Api, _name: str, text: str) -> Answers:
    """Read it as a document of YAML, and as one of JSON."""
    for form in ("yaml", "json"):
        try:
            parse_document(text, format=form)
        except MalformedJson:
            yield 422, "malformed"
        except Refusal as refusal:
            yield 422, refusal.code
        else:
            yield 200, ""


KINDS: Final[dict[str, Callable[[Api, str, str], Answers]]] = {
    "schemas": schemas,
    "arguments": arguments,
    "bodies": bodies,
    "yaml": yaml,
}


async def main(corpus: str, database_url: str, home: str) -> None:
    """Send a corpus to an application of this process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    # What costs too much is to be cut off by its steps, on every machine alike.
    async with running(database_url, Path(home), request_seconds_max=3600) as api:
        await api.credential("billing-api")
        await api.grant("invoice:write:default")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, text in read(corpus).items():
            answers = [answer async for answer in KINDS[corpus](api, name, text)]
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(json.dumps([name, answers, grown]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

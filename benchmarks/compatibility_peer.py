"""One peer as a worker: questions in, answers out, a JSON object a line. It needs nothing of ours.

    python compatibility_peer.py jsonsubschema < questions > answers

An answer is `yes`, `no`, `unknown` or `error`; a `no` may come with a witness.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]
Schema = dict[str, Any] | bool


def jsonschema_rs(question: dict[str, Any]) -> Answer:
    """The prover alone, which has a "no" but never says why."""
    module: Any = importlib.import_module("jsonschema_rs")
    drafts = {
        "draft-04": module.Draft4,
        "draft-06": module.Draft6,
        "draft-07": module.Draft7,
        "2020-12": module.Draft202012,
    }
    old, new = (
        module.canonicalize(
            question[side],
            draft=drafts[question[f"{side}_draft"]],
            validate_formats=question["assert_format"],
            offline=True,
        )
        for side in ("old", "new")
    )
    return {"answer": new.covers(old).value}


def jsoncompat(question: dict[str, Any]) -> Answer:
    """What it calls a deserialiser; it refuses to read any `$schema` but the newest."""
    module: Any = importlib.import_module("jsoncompat")
    old, new = (json.dumps(without_dialect(question[side])) for side in ("old", "new"))
    return {"answer": "yes" if module.check_compat(old, new, "deserializer") else "no"}


def jsonsubschema(question: dict[str, Any]) -> Answer:
    module: Any = importlib.import_module("jsonsubschema")
    return {"answer": "yes" if module.isSubschema(question["old"], question["new"]) else "no"}


def argwitness(question: dict[str, Any]) -> Answer:
    """It only searches for arguments, which are objects."""
    module: Any = importlib.import_module("argwitness.engine")
    old, new = (
        {"tools": [{"name": "tool", "inputSchema": without_dialect(question[side])}]}
        for side in ("old", "new")
    )
    finding = module.compare(old, new, show_values=True)["findings"][0]
    if finding["status"] == "breaking":
        return {"answer": "no", "witness": finding["witness"]["arguments"]}
    return {"answer": "yes" if finding["status"] == "unchanged" else "unknown"}


PEERS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "jsonschema-rs": jsonschema_rs,
    "jsoncompat": jsoncompat,
    "jsonsubschema": jsonsubschema,
    "argwitness": argwitness,
}


def without_dialect(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword != "$schema"}


def main(name: str) -> None:
    # What a peer prints must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        question = json.loads(line)
        started = time.process_time()
        try:
            answer = PEERS[name](question)
        except BaseException as error:  # noqa: BLE001 -- whatever it raises is its answer
            answer: Answer = {"answer": "error", "note": f"{type(error).__name__}: {error}"[:200]}
        answer["seconds"] = time.process_time() - started
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

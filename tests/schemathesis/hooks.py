"""What Schemathesis is told beside the OpenAPI document; it loads this in its own environment.

So nothing of ours is imported here. `TALLYSTICK_KNOWN` holds, as JSON, the names of what is there:
the parameters of paths by name, an effect that is quarantined, and the body of a plan that is
accepted.
"""

import json
import os
from typing import Any

import schemathesis

# It is not in our environment, and pyright takes this folder for it.
# pyright: reportAttributeAccessIssue=false

ALWAYS = {"type", "title", "status", "detail", "code", "retryable"}
OF_QUARANTINED = ("/quarantine/{effect_id}", "/resolve", "/retry", "/withdraw", "/migrate")
KNOWN = json.loads(os.environ["TALLYSTICK_KNOWN"])


@schemathesis.hook
def before_call(_context: Any, case: Any, **_options: Any) -> None:
    """Ask every other time about what is there: made-up names alone would lead nowhere."""
    if case.meta is None or not case.meta.generation.mode.is_positive or is_odd(case):
        return
    for name in case.path_parameters or {}:
        case.path_parameters[name] = KNOWN["path"].get(name, case.path_parameters[name])
    if case.path.endswith(OF_QUARANTINED):
        case.path_parameters["effect_id"] = KNOWN["quarantined"]
    if (case.method, case.path) == ("POST", "/v1/effects"):
        case.body = {**case.body, **KNOWN["plan"]}


def is_odd(case: Any) -> bool:
    return len(repr((case.path_parameters, case.query, case.body))) % 2 == 1


@schemathesis.check
def every_refusal_is_a_problem(_context: Any, response: Any, _case: Any) -> None:
    """Hold every answer of 400 and above to the documented form (RFC 9457)."""
    if response.status_code < 400:
        return
    media = (response.headers.get("content-type") or [""])[0]
    assert media == "application/problem+json", f"{response.status_code} is {media or 'nothing'}"
    body = json.loads(response.content)
    assert body.keys() >= ALWAYS, f"{sorted(ALWAYS - body.keys())} not told"
    assert body["status"] == response.status_code
    assert body["type"] == f"urn:tallystick:problem:{body['code']}"

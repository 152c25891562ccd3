"""Facts: the values that a policy keeps of the results of tools.

A result that has no value for a fact takes the earlier value away: what an older result said does
not vouch for what is asked for now.
"""

from json import JSONEncoder
from typing import Final

from tallystick.canonical import Json, canonical_bytes
from tallystick.policy.call import Call
from tallystick.policy.history import CapturedFact
from tallystick.policy.operators import Kind, kind_of
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Fact, PerSource
from tallystick.policy.transformations import transformed

FACT_BYTES_MAX: Final = 16 * 1024
KEY_CHARS_MAX: Final = 512

_encode_string: Final = JSONEncoder(ensure_ascii=False).encode


def captured(policy: Policy, call: Call, result: Json) -> tuple[CapturedFact, ...]:
    """Return what a successful call's result gives for each fact of its tool.

    A value longer than `FACT_BYTES_MAX` bytes of canonical JSON is not kept, as if it were not
    there.
    """
    found: list[CapturedFact] = []
    for fact in policy.facts_of(call.tool):
        key = "" if fact.per is None else _key(fact, call, result)
        if key is not None:
            value = transformed(fact.path.find(result), fact.transform)
            found.append(CapturedFact(fact.name, key, value if _is_small(value) else None))
    return tuple(found)


def key_text(value: Json) -> str | None:
    """Return what tells a fact's values apart as canonical JSON text.

    None for what cannot: null, a list, an object, and a text that is too long.
    """
    if isinstance(value, str):
        # Canonical JSON (RFC 8785) escapes in a string what Python does.
        return _encode_string(value) if len(value) <= KEY_CHARS_MAX else None
    if kind_of(value) in (Kind.NUMBER, Kind.BOOLEAN):
        return canonical_bytes(value).decode()
    return None


def _key(fact: Fact, call: Call, result: Json) -> str | None:
    assert fact.per is not None
    place = dict(call.arguments) if fact.per_source is PerSource.ARG else result
    return key_text(fact.per.find(place))


def _is_small(value: Json) -> bool:
    if isinstance(value, str | list | dict):
        return len(canonical_bytes(value)) <= FACT_BYTES_MAX
    return kind_of(value) is not Kind.OTHER

"""Pairs of schemas made to hurt, and the process that judges one: `python hostile.py NAME STEPS`.

It prints one JSON object: the verdict, or the code of the refusal, and the memory it took. What
else is raised ends it with a trace.
"""

import json
import resource
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from tallystick.compatibility.comparison import compare
from tallystick.errors import TallystickError

ADDRESS_SPACE_BYTES: Final = 1536 * 2**20

Schema = Any
NO, YES, OPEN, REFUSED = "incompatible", "compatible", "undecided", "refused"


def nested(depth: int, inner: Schema, keyword: str = "items") -> Schema:
    for _ in range(depth):
        inner = {keyword: inner}
    return inner


def recursive(leaf: Schema, **siblings: Any) -> Schema:
    """Return the schema of a tree, whose reference has siblings."""
    tree = {
        "type": "object",
        "properties": {
            "value": leaf,
            "next": {"$ref": "#/$defs/tree", **siblings},
            "all": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
    }
    return {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}


def endless(**more: Any) -> Schema:
    """Return a schema that only an endless value would satisfy."""
    inner = {"type": "object", "required": ["t"], "properties": {"t": {"$ref": "#/$defs/t"}}}
    return {"$ref": "#/$defs/t", "$defs": {"t": inner | more}}


def choices(count: int, last: Schema) -> Schema:
    """Return a schema of 2**count combinations of branches."""
    pairs = [
        {
            "anyOf": [
                {"properties": {f"p{number}": {"const": "a"}}},
                {"properties": {f"q{number}": {"const": "b"}}},
            ]
        }
        for number in range(count)
    ]
    return {"type": "object", "allOf": [*pairs, last]}


def conditions(count: int, last: Schema) -> Schema:
    """Return a schema of 2**count paths through conditions."""
    steps = [
        {
            "if": {"properties": {f"p{number}": {"const": 1}}, "required": [f"p{number}"]},
            "then": {"required": [f"then{number}"]},
            "else": {"required": [f"else{number}"]},
        }
        for number in range(count)
    ]
    return {"type": "object", "allOf": [*steps, last]}


def names(count: int) -> list[str]:
    return [f"n{number:05}" for number in range(count)]


def consts(start: int, stop: int) -> Schema:
    return {"anyOf": [{"const": number} for number in range(start, stop)]}


def patterned(*texts: str) -> tuple[Schema, ...]:
    return tuple({"type": "string", "pattern": text} for text in texts)


def dynamic(leaf: Schema) -> Schema:
    """Return a schema with two targets for one dynamic reference."""
    return {
        "$id": "https://example.com/root",
        "$ref": "list",
        "$defs": {
            "item": {"$dynamicAnchor": "item", **leaf},
            "list": {
                "$id": "list",
                "type": "array",
                "items": {"$dynamicRef": "#item"},
                "$defs": {"any": {"$dynamicAnchor": "item"}},
            },
        },
    }


def at_most(limit: int) -> Schema:
    return {"type": "array", "items": {"type": "integer", "maximum": limit}}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}

# Each pair, and what may be said of it by producers of any kind.
PAIRS: Final[dict[str, tuple[Callable[[], tuple[Schema, ...]], set[str]]]] = {
    "nested too deeply": (lambda: (nested(10_000, STRING), STRING), {REFUSED}),
    "nested deeply": (lambda: (nested(60, STRING), nested(60, INTEGER)), {NO, OPEN}),
    "negated deeply": (
        lambda: (nested(30, STRING, "not"), nested(30, STRING | {"minLength": 1}, "not")),
        {NO, OPEN},
    ),
    "reference to itself": (lambda: ({"$ref": "#"}, STRING), {REFUSED, OPEN}),
    "references in a circle": (
        lambda: ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, STRING),
        {REFUSED, OPEN},
    ),
    "recursion": (lambda: (recursive(INTEGER), recursive({"type": "number"})), {YES}),
    "recursion that breaks": (lambda: (recursive({"type": "number"}), recursive(INTEGER)), {NO}),
    "recursion with siblings": (
        lambda: (recursive(INTEGER), recursive(INTEGER, minProperties=1)),
        {NO, OPEN},
    ),
    "recursion without end": (lambda: (endless(), False), {YES, OPEN}),
    "recursion without end, twice": (lambda: (endless(), endless(maxProperties=1)), {YES, OPEN}),
    "a million branches": (lambda: (consts(0, 10**6), consts(0, 10**6)), {REFUSED, YES, OPEN}),
    "many branches": (lambda: (consts(0, 9_000), consts(1, 9_000)), {NO, OPEN}),
    "many branches in order": (lambda: (consts(0, 9_000), {"type": "integer"}), {YES, OPEN}),
    "a long enumeration": (
        lambda: ({"enum": names(20_000)}, {"enum": names(20_000)[::-1]}),
        {YES, OPEN},
    ),
    "alternatives in all": (
        lambda: (choices(24, True), choices(24, {"required": ["x"]})),
        {NO, OPEN},
    ),
    "alternatives that agree": (
        lambda: (choices(24, {"required": ["x"]}), choices(24, True)),
        {YES, OPEN},
    ),
    "conditions": (lambda: (conditions(24, True), conditions(24, {"required": ["x"]})), {NO, OPEN}),
    "conditions that agree": (
        lambda: (conditions(24, {"required": ["x"]}), conditions(24, True)),
        {YES, OPEN},
    ),
    "exactly one of many": (
        lambda: (
            {"oneOf": [{"minimum": number, "type": "number"} for number in range(60)]},
            {"oneOf": [{"minimum": number, "type": "number"} for number in range(59)]},
        ),
        {YES, NO, OPEN},
    ),
    "repetition of a repetition": (lambda: patterned("^(a+)+$", "^a+$"), {YES, OPEN}),
    "ambiguous repetition": (lambda: patterned("(x+x+)+y", "(x+x+)+yy"), {NO, OPEN}),
    "repetition of words": (
        lambda: patterned("^(([a-z])+.)+[A-Z]([a-z])+$", "^(([a-z])+.)+[A-Z]([a-z])+.$"),
        {NO, OPEN},
    ),
    "expression of a huge automaton": (
        lambda: patterned("^(a|b)*a(a|b){24}$", "^(a|b)*b(a|b){24}$"),
        {NO, OPEN},
    ),
    "product of huge automata": (
        lambda: patterned("^(a|b)*a(a|b){24}$", "^(a|b)*a(a|b){24}$|^c"),
        {YES, OPEN},
    ),
    "wide classes": (lambda: patterned(r"^[\w\W]{3,300}$", r"^[\d\D]{3,299}$"), {NO, OPEN}),
    "counted counts": (lambda: patterned("(a{1,1000}){1,1000}", "a"), {REFUSED, YES, OPEN}),
    "parentheses": (
        lambda: patterned("(" * 5_000 + "a" + ")" * 5_000, "a"),
        {REFUSED, YES, OPEN},
    ),
    "numbers beyond doubles": (
        lambda: ({"minimum": 10**400}, {"minimum": 10**400 + 1}),
        {REFUSED, NO, OPEN},
    ),
    "numbers at the end of doubles": (
        lambda: ({"minimum": 1e308}, {"minimum": 1.7976931348623157e308}),
        {NO, OPEN},
    ),
    "tiny steps": (lambda: ({"multipleOf": 5e-324}, {"multipleOf": 1e308}), {NO, OPEN}),
    "steps that rarely meet": (
        lambda: (
            {"allOf": [{"multipleOf": 1e-9 + number} for number in (1, 3, 7, 9, 11)]},
            {"const": 0},
        ),
        {YES, NO, OPEN},
    ),
    "contradiction": (
        lambda: ({"allOf": [{"type": "string"}, {"type": "number"}]}, False),
        {YES},
    ),
    "contradiction inside": (
        lambda: ({"type": "object", "required": ["a"], "properties": {"a": False}}, STRING),
        {YES},
    ),
    "contradiction of counts": (
        lambda: ({"type": "array", "minItems": 2, "maxItems": 1}, STRING),
        {YES},
    ),
    "dynamic reference": (lambda: (dynamic(INTEGER), dynamic(STRING)), {NO, OPEN, REFUSED}),
    "unknown dialect": (lambda: ({"$schema": "https://example.com/d"}, STRING), {REFUSED}),
    "remote reference": (lambda: ({"$ref": "https://example.com/s"}, STRING), {REFUSED, OPEN}),
    "NUL in a constant": (lambda: ({"const": "\0"}, STRING), {REFUSED, YES, OPEN}),
    "NUL in a pattern": (lambda: patterned(r"^\x00$", r"^\x01$"), {NO, OPEN}),
    "huge minItems": (
        lambda: ({"type": "array", "minItems": 10**9}, {"minItems": 10**9 + 1}),
        {OPEN},
    ),
    "huge minLength": (
        lambda: ({"type": "string", "minLength": 10**9}, {"minLength": 10**9 + 1}),
        {OPEN},
    ),
    "huge minLength with a pattern": (
        lambda: ({"type": "string", "minLength": 10**9, "pattern": "^a*$"}, {"pattern": "^b*$"}),
        {OPEN},
    ),
    "huge minProperties": (
        lambda: ({"type": "object", "minProperties": 10**9}, {"minProperties": 10**9 + 1}),
        {OPEN},
    ),
    "huge minContains": (
        lambda: (
            {"type": "array", "contains": STRING, "minContains": 10**9},
            {"contains": STRING, "minContains": 10**9 + 1},
        ),
        {OPEN},
    ),
    "huge bounds that agree": (
        lambda: ({"type": "array", "minItems": 10**9 + 1}, {"minItems": 10**9}),
        {YES, OPEN},
    ),
    "many required": (
        lambda: ({"type": "object", "required": names(5_000)}, {"required": names(5_001)}),
        {NO, OPEN},
    ),
    "many properties": (
        lambda: (
            {"type": "object", "properties": dict.fromkeys(names(3_000), STRING)},
            {"type": "object", "properties": dict.fromkeys(names(3_001), STRING)},
        ),
        {NO, OPEN},
    ),
    "a chain of dependencies": (
        lambda: (
            {"type": "object", "required": ["n00000"]}
            | {"dependentRequired": {a: [b] for a, b in pairwise(names(401))}},
            {"required": ["n00400"]},
        ),
        {YES, OPEN},
    ),
    "overlapping patterns": (
        lambda: (
            {"patternProperties": {f"^.{{{n}}}a": {"minimum": n} for n in range(30)}},
            {"patternProperties": {f"^.{{{n}}}a": {"minimum": n + 1} for n in range(30)}},
        ),
        {NO, OPEN},
    ),
    "unevaluated under many branches": (
        lambda: tuple(
            {
                "anyOf": [{"properties": {name: STRING}} for name in names(count)],
                "unevaluatedProperties": False,
            }
            for count in (24, 23)
        ),
        {NO, OPEN},
    ),
    "debts of many rules": (
        lambda: (
            {"type": "object"},
            {"anyOf": [{"additionalProperties": {"minimum": n}} for n in range(1_500)]},
        ),
        {NO, OPEN},
    ),
    "a union of many patterns": (
        lambda: tuple(
            {"anyOf": [{"type": "string", "pattern": f"^k{n}{end}"} for n in range(300)]}
            for end in ("", "a")
        ),
        {NO, OPEN},
    ),
    "unique items of few values": (
        lambda: (
            {"type": "array", "items": {"enum": names(60)}, "uniqueItems": True, "minItems": 60},
            {"contains": {"const": "n00059"}},
        ),
        {YES, OPEN},
    ),
    "pigeons": (
        lambda: (
            {"type": "array", "items": {"enum": names(40)}, "uniqueItems": True, "minItems": 41},
            False,
        ),
        {YES, OPEN},
    ),
    "many contains": (
        lambda: (
            {"type": "array", "allOf": [{"contains": {"const": n}} for n in names(40)]},
            {"minItems": 41},
        ),
        {NO, OPEN},
    ),
    "a product of items": (
        lambda: (
            {"type": "array", "prefixItems": [{"enum": names(40)}] * 40, "items": False},
            {"type": "array", "prefixItems": [{"enum": names(39)}] * 40},
        ),
        {NO, OPEN},
    ),
}


def main(name: str, steps: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    old, new = PAIRS[name][0]()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        compared = compare(old, new, budget=steps)
    except TallystickError as error:
        answer = {"declared": REFUSED, "any": REFUSED, "note": str(error)}
    else:
        answer = {
            "declared": compared.declared.verdict,
            "any": compared.any.verdict,
            "note": str(compared.any.obstacle or ""),
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(answer | {"kilobytes": peak - base}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

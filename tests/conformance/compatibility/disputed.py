"""Where a suite and the JSON Schema specification disagree, the specification wins.

Only what can be shown stands here: a dispute over "contained" has a value that says otherwise, and
one over "not contained" is about a schema of one value or is settled by another prover.
`test_suites.py` asks them.
"""

from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json

_BESIDE: Final = (
    "the suite means to negate the whole schema, and negates one keyword or none: all others stay"
    " beside the `not`, so that what it takes for a complement is none"
)
_RENAMED: Final = (
    "the suite renames identifiers and references also inside `enum` and `const`, where they are"
    " data, so that the halves list different values"
)
_OWN_NOTION: Final = (
    "the fixture looks at `additionalProperties: true` as at nothing; any value may stand there"
)
_CONTENT: Final = (
    "the suite asserts `contentEncoding` and `contentMediaType`, which draft-07 leaves to the"
    " implementation, and which are annotations here, as 2020-12 has them"
)
_CAUTION: Final = (
    r"the fixture pins that its tool gives up; `^\cC$` matches U+0003 alone, and that is not the"
    " one name whose value the other schema restricts"
)
_ASCII: Final = (
    r"the suite takes `\d` and `\w` for Unicode classes; in ECMA-262, which JSON Schema points to,"
    " they hold ASCII characters alone"
)


@dataclass(frozen=True, slots=True)
class Dispute:
    """What the specification says of a case, against its suite.

    Args:
        truth: Whether the old schema is contained in the new one.
        reason: Why the suite says otherwise.
        witness: Where it is not, a value that the old schema accepts and the new one refuses.
    """

    truth: bool
    reason: str
    witness: Json = None


def _disputes(
    reason: str, *, witnesses: dict[str, Json] | None = None, contained: tuple[str, ...] = ()
) -> dict[str, Dispute]:
    told = {id_: Dispute(False, reason, value) for id_, value in (witnesses or {}).items()}
    return told | {id_: Dispute(True, reason) for id_ in contained}


_TREE: Final[Json] = {
    "meta": "",
    "nodes": [{"value": 0, "subtree": {"meta": "", "nodes": []}}],
}
_DIGITS: Final = "\u09ea\u09e8"
_KHAJIT: Final[Json] = {_DIGITS: "khajit has wares if you have coin"}
_SCHOOL: Final[Json] = {"l'école": "pas de vraie vie"}
_WINTERS: Final = (
    "Les hivers de mon enfance étaient des saisons longues, longues. Nous vivions en trois "
    "lieux: l'école, l'église et la patinoire; mais la vraie vie était sur la patinoire."
)

DISPUTED: Final[dict[str, Dispute]] = {
    **_disputes(
        _BESIDE,
        witnesses={
            "containment/draft7/unsatisfiable/ref/13/s1SubsetEqOfs2": _TREE,
            "containment/draft2020-12/unsatisfiable/ref/12/s1SubsetEqOfs2": _TREE,
            "containment/draft2020-12/unsatisfiable/dynamicRef/9/s1SubsetEqOfs2": {
                "bar": {"baz": {}}
            },
            "containment/draft2020-12/unsatisfiable/dynamicRef/1/s1SubsetEqOfs2": [],
            "containment/draft2020-12/unsatisfiable/dynamicRef/2/s1SubsetEqOfs2": [],
            "containment/draft7/universal/items/6/s2SubsetEqOfs1": None,
            "containment/draft7/universal/ref/13/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/dynamicRef/1/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/dynamicRef/2/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/dynamicRef/3/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/dynamicRef/9/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/dynamicRef/10/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/items/4/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/ref/12/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/ref/14/s2SubsetEqOfs1": {"prop1": {"a": 1}},
            "containment/draft2020-12/universal/unevaluatedItems/15/s2SubsetEqOfs1": None,
            "containment/draft2020-12/universal/unevaluatedProperties/19/s2SubsetEqOfs1": None,
        },
    ),
    **_disputes(
        _BESIDE,
        contained=(
            "containment/draft7/nonvalid/ref/16/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/dynamicRef/1/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/dynamicRef/2/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/dynamicRef/9/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/ref/14/s1SubsetEqOfs2",
        ),
    ),
    **_disputes(
        _CONTENT,
        contained=(
            "containment/draft7/valid/optional/content/2/s1SubsetEqOfs2",
            "containment/draft7/valid/optional/content/5/s1SubsetEqOfs2",
            "containment/draft7/valid/optional/content/8/s1SubsetEqOfs2",
            "containment/draft7/valid/optional/content/9/s1SubsetEqOfs2",
        ),
    ),
    **_disputes(
        _CAUTION,
        contained=(
            "jsoncompat/unsupported_subset_pattern_properties_additional_fallback/serializer",
        ),
    ),
    **_disputes(
        _OWN_NOTION,
        witnesses={
            "jsoncompat/pattern_properties_fall_back_to_additional_properties/deserializer": {
                "x": {"a": 1}
            },
        },
    ),
    **_disputes(
        _RENAMED,
        witnesses={
            "containment/draft7/unsatisfiable/id/1/s1SubsetEqOfs2": {
                "$id": "https://localhost:1234/id/my_identifier.json",
                "type": "null",
            },
            "containment/draft7/unsatisfiable/ref/17/s1SubsetEqOfs2": {
                "$ref": "#/allOf/0/definitions/a_string"
            },
            "containment/draft2020-12/unsatisfiable/anchor/4/s1SubsetEqOfs2": {
                "$anchor": "my_anchor",
                "type": "null",
            },
            "containment/draft2020-12/unsatisfiable/id/2/s1SubsetEqOfs2": {
                "$id": "https://localhost:1234/id/my_identifier.json",
                "type": "null",
            },
            "containment/draft2020-12/unsatisfiable/ref/15/s1SubsetEqOfs2": {
                "$ref": "#/allOf/0/$defs/a_string"
            },
            "containment/draft7/universal/id/1/s2SubsetEqOfs1": {
                "$id": "https://localhost:1234/id/my_identifier1.json",
                "type": "null",
            },
            "containment/draft7/universal/ref/17/s2SubsetEqOfs1": {
                "$ref": "#/anyOf/1/definitions/a_string"
            },
            "containment/draft2020-12/universal/anchor/4/s2SubsetEqOfs1": {
                "$anchor": "my_anchor1",
                "type": "null",
            },
            "containment/draft2020-12/universal/id/2/s2SubsetEqOfs1": {
                "$id": "https://localhost:1234/id/my_identifier1.json",
                "type": "null",
            },
            "containment/draft2020-12/universal/ref/15/s2SubsetEqOfs1": {
                "$ref": "#/anyOf/1/$defs/a_string"
            },
        },
    ),
    **_disputes(
        _ASCII,
        witnesses={
            "containment/draft7/unions/optional/unicode/1/s1SubsetEqOfs2": _WINTERS,
            "containment/draft7/unions/optional/unicode/2/s1SubsetEqOfs2": _DIGITS,
            "containment/draft7/unions/optional/unicode/3/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft7/unions/optional/unicode/4/s1SubsetEqOfs2": _KHAJIT,
            "containment/draft7/valid/optional/unicode/1/s1SubsetEqOfs2": _WINTERS,
            "containment/draft7/valid/optional/unicode/2/s1SubsetEqOfs2": _WINTERS,
            "containment/draft7/valid/optional/unicode/9/s1SubsetEqOfs2": _DIGITS,
            "containment/draft7/valid/optional/unicode/10/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft7/valid/optional/unicode/11/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft7/valid/optional/unicode/18/s1SubsetEqOfs2": _KHAJIT,
            "containment/draft2020-12/unions/optional/unicode/1/s1SubsetEqOfs2": _WINTERS,
            "containment/draft2020-12/unions/optional/unicode/2/s1SubsetEqOfs2": _DIGITS,
            "containment/draft2020-12/unions/optional/unicode/3/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft2020-12/unions/optional/unicode/4/s1SubsetEqOfs2": _KHAJIT,
            "containment/draft2020-12/valid/optional/unicode/1/s1SubsetEqOfs2": _WINTERS,
            "containment/draft2020-12/valid/optional/unicode/2/s1SubsetEqOfs2": _WINTERS,
            "containment/draft2020-12/valid/optional/unicode/9/s1SubsetEqOfs2": _DIGITS,
            "containment/draft2020-12/valid/optional/unicode/10/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft2020-12/valid/optional/unicode/11/s1SubsetEqOfs2": _SCHOOL,
            "containment/draft2020-12/valid/optional/unicode/18/s1SubsetEqOfs2": _KHAJIT,
        },
    ),
    **_disputes(
        _ASCII,
        contained=(
            "containment/draft7/nonvalid/optional/unicode/1/s1SubsetEqOfs2",
            "containment/draft7/nonvalid/optional/unicode/2/s1SubsetEqOfs2",
            "containment/draft7/nonvalid/optional/unicode/5/s1SubsetEqOfs2",
            "containment/draft7/nonvalid/optional/unicode/6/s1SubsetEqOfs2",
            "containment/draft7/nonvalid/optional/unicode/7/s1SubsetEqOfs2",
            "containment/draft7/nonvalid/optional/unicode/10/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/1/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/2/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/5/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/6/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/7/s1SubsetEqOfs2",
            "containment/draft2020-12/nonvalid/optional/unicode/10/s1SubsetEqOfs2",
        ),
    ),
}

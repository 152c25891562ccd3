"""What is strict JSON, what is refused, where, and what a digest is taken of."""

import enum
import pickle
from typing import Any

import pytest

from tallystick.canonical import (
    MISSING,
    MalformedJson,
    canonical_bytes,
    check_json,
    digest,
    parse_json,
    pointer_join,
    resolve_pointer,
)


class Colour(enum.Enum):
    RED = "red"


class Shade(str, enum.Enum):  # noqa: UP042 -- str() of it is not its text
    DARK = "dark"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (' {"a": [1, -0, 1.5, true]} ', {"a": [1, 0, 1.5, True]}),
        (b'"\xc3\xa9"', "é"),
        ('"\\ud83d\\ude00"', "😀"),  # a surrogate pair is one character
        ("[9007199254740991, -9007199254740991]", [2**53 - 1, -(2**53) + 1]),
        ("1e21", 1e21),  # its canonical form has an exponent, so that it is read back as it is
        ("1e-400", 0.0),
        ("[" * 128 + "]" * 128, "any"),
    ],
)
def test_strict_json_is_read(text, value):
    assert value == "any" or parse_json(text) == value
    assert parse_json(canonical_bytes(parse_json(text))) == parse_json(text)


@pytest.mark.parametrize(
    ("text", "pointer", "detail"),
    [
        ('{"a": {"b": 1, "b": 1}}', "/a/b", "a key that the object has already"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "/a/b", "a key that the object has already"),
        ('[0, {"x/~": 1, "x/~": 1}]', "/1/x~1~0", "a key that the object has already"),
        ("[NaN]", "/0", "NaN is not JSON"),
        ('{"a": -Infinity}', "/a", "-Infinity is not JSON"),
        ("[1e400]", "/0", "a number that a double cannot hold"),
        ("[9007199254740992]", "/0", "an integer beyond ±(2^53-1)"),
        ("[-9007199254740992]", "/0", "an integer beyond ±(2^53-1)"),
        ("[1" + "0" * 5000 + "]", "/0", "an integer beyond ±(2^53-1)"),
        ("[1e16]", "/0", "an integer beyond ±(2^53-1)"),
        ('["\\ud800"]', "/0", "a lone surrogate (U+D800)"),
        ('{"a": {"\\udc00": 1}}', "/a", "a lone surrogate (U+DC00)"),
        ('["a\\u0000"]', "/0", "the character NUL (U+0000)"),
        ('{"a": {"\\u0000": 1}}', "/a", "the character NUL (U+0000)"),
        ('["\ud800"]', "/0", "a lone surrogate (U+D800)"),
        ('["\0"]', "", "not JSON: Invalid control character at, line 1 column 3"),
        (b'["\xff"]', "", "byte 2 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "", "not JSON"),  # a byte order mark
        ("{}".encode("utf-16"), "", "byte 0 is not UTF-8"),
        ("", "", "not JSON: Expecting value, line 1 column 1"),
        ('{\n"a": 1,}', "", "line 2 column"),
        ("{} {}", "", "not JSON: Extra data, line 1 column 4"),
        ("[01]", "", "not JSON"),
        ("['a']", "", "not JSON"),
        ("[" * 129 + "]" * 129, "/0" * 128, "nested more than 128 deep"),
        ("[" * 100_000, "/0" * 128, "nested more than 128 deep"),
        ('{"a":' * 100_000, "/a" * 128, "nested more than 128 deep"),
        ('["[",{"b":' * 1000, "/1/b" * 64, "nested more than 128 deep"),
    ],
)
def test_anything_else_is_refused_at_its_place(text, pointer, detail):
    with pytest.raises(MalformedJson) as refused:
        parse_json(text)

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000_000,
        '"' + "a" * 10_000_000,
        '["' + '\\"' * 5_000_000,
        "[" * 200 + '"' * 5_000_000,
        "1" * 10_000_000,
        "1" * 10_000_000 + ".5",
        "1e" + "1" * 10_000_000,
        '{"a"' * 2_000_000,
    ],
    ids=lambda text: f"{text[:8]}...",
)
def test_ten_megabytes_of_hostile_text_are_refused(text):
    with pytest.raises(MalformedJson):
        parse_json(text)


def test_depth_is_the_callers_choice():
    assert parse_json("[[1]]", depth_max=2) == [[1]]
    with pytest.raises(MalformedJson, match="nested more than 1 deep"):
        parse_json("[[1]]", depth_max=1)


def nested(depth) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def endless() -> Any:
    value: Any = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "pointer", "detail"),
    [
        ({"a": (1,)}, "/a", "a Python tuple is not JSON"),
        ({"a": {1, 2}}, "/a", "a Python set is not JSON"),
        ([b"a"], "/0", "a Python bytes is not JSON"),
        ([Colour.RED], "/0", "a Python Colour is not JSON"),
        ({"a": {1: 2}}, "/a", "a key that is not a string"),
        ([float("nan")], "/0", "a number that a double cannot hold"),
        ([float("-inf")], "/0", "a number that a double cannot hold"),
        ([2**53], "/0", "an integer beyond"),
        (["\ud800"], "/0", "a lone surrogate"),
        (nested(129), "/0" * 128, "nested more than 128 deep"),
        (nested(100_000), "/0" * 128, "nested more than 128 deep"),
        (endless(), "/0" * 128, "nested more than 128 deep"),
    ],
)
def test_python_value_that_is_not_json_is_refused(value, pointer, detail):
    with pytest.raises(MalformedJson, match=detail) as refused:
        check_json(value)

    assert refused.value.pointer == pointer


def test_checked_value_is_a_copy_of_plain_types():
    given: Any = {"shade": Shade.DARK, "list": [1]}
    copy: Any = check_json(given)
    given["list"].append(2)

    assert copy == {"shade": "dark", "list": [1]}
    assert type(copy["shade"]) is str


@pytest.mark.parametrize("value", [float("nan"), 2**53, "\ud800", {"\ud800": 1}, nested(100_000)])
def test_only_strict_json_has_a_canonical_form(value):
    with pytest.raises(MalformedJson):
        canonical_bytes(value)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (1, "1", False),
        (None, {}, False),
        ([1, 2], [2, 1], False),
        ("é", "e\u0301", False),  # RFC 8785 does not normalise
    ],
)
def test_digest_is_of_the_value_not_of_its_spelling(one, other, equal):
    assert (digest(one) == digest(other)) is equal


def test_digest_says_how_it_was_made():
    # printf '{"a":1}' | sha256sum
    assert digest({"a": 1}) == (
        "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    )


# RFC 6901, section 5.
EXAMPLE = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", EXAMPLE),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
        ("/foo/2", MISSING),
        ("/foo/-", MISSING),
        ("/foo/00", MISSING),
        ("/foo/-1", MISSING),
        ("/foo/" + "9" * 5000, MISSING),
        ("/foo/\u0660", MISSING),  # a digit, but not an ASCII one
        ("/nope", MISSING),
        ("/foo/0/0", MISSING),
    ],
)
def test_pointer_is_resolved(pointer, found):
    assert resolve_pointer(EXAMPLE, pointer) == found


@pytest.mark.parametrize("pointer", ["foo", "/~", "/~2", "#/foo"])
def test_what_is_no_pointer_is_refused(pointer):
    with pytest.raises(ValueError, match="not a JSON Pointer"):
        resolve_pointer(EXAMPLE, pointer)


def test_tokens_are_escaped():
    assert pointer_join() == ""
    assert pointer_join("a/b", "m~n", 0, "~1") == "/a~1b/m~0n/0/~01"


def test_malformed_json_survives_pickle():
    error = pickle.loads(pickle.dumps(MalformedJson("Not good.", "/a")))

    assert (error.detail, error.pointer, str(error)) == ("Not good.", "/a", "Not good. (at '/a')")

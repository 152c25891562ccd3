"""The part of YAML that means the same as JSON, and the refusal of all the rest."""

from typing import Any

import pytest

from tallystick.canonical import MalformedJson
from tallystick.document import DOCUMENT_BYTES_MAX, parse_document
from tallystick.errors import TooLarge


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: text", "text"),
        ("a: 'text'", "text"),
        ("a: |\n  two\n  lines\n", "two\nlines\n"),
        ("a: 1", 1),
        ("a: -12", -12),
        ("a: 0x1F", 31),
        ("a: 0o17", 15),
        ("a: 1.50", 1.5),
        ("a: .5", 0.5),
        ("a: 1e3", 1000.0),
        ("a: true", True),
        ("a: False", False),
        ("a: null", None),
        ("a: ~", None),
        ("a:", None),
        # What YAML 1.1 would have guessed is text.
        ("a: yes", "yes"),
        ("a: off", "off"),
        ("a: 2026-11-30", "2026-11-30"),
        ("a: 2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 1_000", "1_000"),
        ("a: 0b11", "0b11"),
        ("a: =", "="),
        # Quoted is text, and so is what says that it is.
        ("a: '1.0'", "1.0"),
        ('a: "true"', "true"),
        ("a: !!str 1.0", "1.0"),
        ("a: ! 12", "12"),
        ("a: !!int '3'", 3),
        ("a: !!float 3", 3),
        ("a: [1, {b: c}]", [1, {"b": "c"}]),
        ("a: {<<: {b: 1}}", {"<<": {"b": 1}}),  # a merge key is a name like another
        ("%YAML 1.2\n---\na: yes\n...\n", "yes"),
        ('{"a": "\\u00e9\\/"}', "é/"),
        ('{"a": "\\ud83d\\ude00"}', "😀"),
    ],
)
def test_yaml_is_read_as_json_would_be(text, value):
    read: Any = parse_document(text, format="yaml")

    assert read == {"a": value}
    assert type(read["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "pointer", "detail"),
    [
        ("a: {b: 1,\n  b: 2}", "/a/b", "a key that the object has already, line 2"),
        ("a:\n  1: x", "/a", "a key that is not a string: quote it, line 2"),
        ("true: x", "", "a key that is not a string: quote it, line 1"),
        ("~: x", "", "a key that is not a string: quote it, line 1"),
        ("? [a]\n: x", "", "a key that is not a string: quote it, line 1"),
        ("a: &x 1", "/a", "an anchor"),
        ("a: *x", "/a", "an alias"),
        ("*x : 1", "", "an alias"),
        ("&x a: 1", "", "an anchor"),
        ("a: &a [x]\nb: &b [*a, *a]", "/a", "an anchor"),
        ("a: !!binary aGk=", "/a", "a tag"),
        ("a: !!timestamp 2026-11-30", "/a", "a tag"),
        ("a: !!set {b}", "/a", "a tag"),
        ("a: !!map [b]", "/a", "a tag"),
        ("a: !!int x", "/a", "a tag"),
        ("a: !!int true", "/a", "a tag"),
        ("a: !!python/object/apply:os.getcwd []", "/a", "a tag"),
        ("%TAG ! tag:example.com,2000:\n---\na: !b c", "/a", "a tag"),
        ("a: [.nan]", "/a/0", "a number that a double cannot hold, line 1"),
        ("a: -.INF", "/a", "a number that a double cannot hold, line 1"),
        ("a: 1e999", "/a", "a number that a double cannot hold, line 1"),
        ("a: 9007199254740992", "/a", "an integer beyond"),
        ("a: " + "1" * 5000, "/a", "an integer beyond"),
        ("a: 0x" + "f" * 5000, "/a", "an integer beyond"),
        ('a: "\\0"', "/a", "the character NUL"),
        ('a: "\\ud800"', "/a", "a lone surrogate"),
        ("a: \ud800", "", "not YAML"),
        ("a: \0", "", "not YAML"),
        ("a: 1\n---\nb: 2", "", "a second document begins, line 2"),
        ("%YAML 1.1\n---\na: yes", "", "only YAML 1.2 is read"),
        ("", "", "the document is empty"),
        ("# nothing", "", "the document is empty"),
        ("a: b: c", "", "not YAML: mapping values are not allowed here, line 1 column 5"),
        ("a: [1, 2", "/a", "not YAML"),
        ("a:\n\t- x", "/a", "not YAML"),
        ("[" * 100_000, "/0" * 128, "nested more than 128 deep, line 1"),
        ("- " * 100_000, "/0" * 128, "nested more than 128 deep, line 1"),
        ("{a: " * 100_000, "/a" * 128, "nested more than 128 deep, line 1"),
    ],
)
def test_what_json_cannot_say_is_refused(text, pointer, detail):
    with pytest.raises(MalformedJson) as refused:
        parse_document(text, format="yaml")

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


@pytest.mark.parametrize("written", ["json", "yaml"])
def test_document_has_a_size_limit(written):
    with pytest.raises(TooLarge):
        parse_document("a" * (DOCUMENT_BYTES_MAX + 1), format=written)


def test_json_is_read_strictly():
    assert parse_document('{"a": 1}', format="json") == {"a": 1}
    with pytest.raises(MalformedJson, match="has already"):
        parse_document('{"a": 1, "a": 2}', format="json")

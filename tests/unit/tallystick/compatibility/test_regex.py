"""Patterns mean here what they mean to the validator, or they are refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick.compatibility.languages.characters import LAST, asked, character, word_characters
from tallystick.compatibility.languages.language import Language
from tallystick.compatibility.languages.regex import UnsupportedPattern
from tallystick.subschema import compile_pattern

CORPUS = Path(__file__).parents[5] / "shared" / "corpus"
# Each pattern with strings on which other dialects would disagree.
CASES = {
    "a": ["", "a", "bab", "A"],
    "": ["", "a"],
    "^a|b$": ["a", "ax", "xb", "xa", "bx", "b\n"],
    "(^a)": ["a", "ba"],
    "a^b": ["ab", "a\nb", "a^b"],
    "a$|b": ["a", "ax", "xb", "a\n"],
    "(^|_)a($|_)": ["a", "_a", "x_a_x", "xa", "ax"],
    "^(^a|b)*$": ["ab", "bb", "ba", "aa"],
    "^$": ["", "\n"],
    ".": ["\n", "\r", "\u2028", "\u2029", "\x0b", "\U0001f600"],
    "(?s).": ["\n", "a"],
    r"\d": ["7", "\u0667"],
    r"\w": ["_", "\u00e9", "-"],
    r"^\S*$": ["\u2003", "\u180e", "\u200b", "\ufeff", "x"],
    r"^[^\S]$": [" ", "\u00a0", "x"],
    r"\bfoo\b": ["foo", "a foo.", "foox", "\u00e9foo", "foo\u0301", "_foo"],
    r"\B": ["", "a", "ab", " "],
    r"^(a\b|b)+$": ["ab", "ba", "a", "bba"],
    r"\Aa\z": ["a", "a\n", "ba"],
    r"\x41\u0042\u{43}\x{44}\U00000045": ["ABCDE", "abcde"],
    r"\cA[\cJ]": ["\x01\n", "cAJ"],
    r"[\n\t\v\f\r]": ["\n", "\x0b", "n"],
    r"\/\-\.\_\"\ ": ['/-._" ', "/-"],
    r"\p{Lu}": ["\u00c9", "\u00e9", "E", "\U00010400"],
    r"^\P{L}$": ["1", "\u00e9"],
    r"[^\p{L}\d]": ["a", "1", "-"],
    "[&&a]": ["&", "a", "b"],
    "[a&&b]": ["&", "a", "b", "c"],
    "[[:alpha:]]": ["a]", "b]", "b", ":]", "["],
    "[a[b]c]": ["ac]", "[c]", "bc]", "a", "c"],
    "[a-]": ["-", "a", "b"],
    "[a-c-e]": ["b", "-", "d", "e"],
    "[^-a]": ["-", "a", "b"],
    "]}": ["]}", "}"],
    "(?i)k": ["K", "k", "\u212a"],
    "(?i:[^s])s": ["ss", "aS", "\u017fs", "as"],
    "a(?i)b|c(?-i:d)": ["aB", "AB", "C", "Cd", "CD"],
    r"(?i)^\w$": ["\u017f", "\u212a", "\u00e9"],
    "(?<n>a)(?P<m>b)(?:c)": ["abc", "ab"],
    "^a{2}$": ["a", "aa", "aaa"],
    "^a{2,}b{0}c{0,1}$": ["aa", "aac", "ac", "aabc"],
    "^(a*?b+?c??){2}$": ["bb", "abcb", "b"],
    "^a**b+*$": ["", "aab", "ba"],
    "^*$+a??": ["", "a"],
    "^(a|)(|b)$": ["", "ab", "b", "ba"],
    "^(ab{1,9}){1,9}$": ["abab", "aab", "abbb"],
    "^(foo|bar|a)$": ["foo", "bar", "a", "foobar"],
}


@pytest.mark.parametrize("pattern", CASES)
def test_a_pattern_means_what_it_means_to_the_validator(pattern: str) -> None:
    language, validator = Language.of_pattern(pattern), compile_pattern(pattern)
    found = {text: language.matches(text) for text in CASES[pattern]}
    assert found == {text: validator.is_valid(text) for text in CASES[pattern]}


@pytest.mark.parametrize("pattern", [r"\s", r"\w", r"\d", ".", r"\b", r"(?i)\W", r"(?i)[k-z]"])
def test_a_set_has_every_character_that_the_validator_takes(pattern: str) -> None:
    language, validator = Language.of_pattern(pattern), compile_pattern(pattern)
    texts = [*map(character, range(0x3000)), *map(character, range(0x3000, LAST, 97))]
    wrong = [text for text in texts if language.matches(text) != validator.is_valid(text)]
    assert not wrong


def test_words_are_those_of_unicode() -> None:
    boundary = compile_pattern(r"\b")
    wrong = [
        place
        for place in range(LAST + 1)
        if word_characters().at(character(place)) != boundary.is_valid(character(place))
    ]
    assert not wrong


def test_the_engine_is_asked_for_every_character() -> None:
    table, digits = asked(r"\p{Nd}"), compile_pattern(r"\p{Nd}")
    every = map(character, range(LAST + 1))
    assert not [text for text in every if table.at(text) != digits.is_valid(text)]


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?=a)b", r"(a)\1", "(?<!a)b", "[", "a{", r"\Q", "*"),  # the engine refuses these
        *("(?m)^a", "(?x)a b", "(?-u:a)", r"\<a", r"\b{start}a", "[]a]", "[!--]", "a{ 3 }"),
        *("(?i)\u00e9", r"(?i)\p{Lu}"),
    ],
)
def test_what_is_not_known_exactly_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        Language.of_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 10_000 + "a" + ")" * 10_000,
        "(" * 30 + "a" + "b)*" * 30,
        "[ab]" * 5_000,
        "|".join(f"a[{character(0x4E00 + place)}b]" for place in range(2_000)),
    ],
    ids=["groups", "loops", "sequence", "union"],
)
def test_a_pattern_beyond_all_measure_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        Language.of_pattern(pattern)


def patterns(schema: Any) -> Iterator[str]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                yield value["pattern"]
            if isinstance(value.get("patternProperties"), dict):
                yield from value["patternProperties"]
        if isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside this repository")
def test_every_pattern_of_the_corpus_that_the_validator_takes_is_known() -> None:
    found: set[str] = set()
    for path in sorted(CORPUS.rglob("*.json")):
        try:
            found.update(patterns(json.loads(path.read_text())))
        except ValueError:
            continue  # not JSON, on purpose
    assert len(found) > 50
    for pattern in sorted(found):
        try:
            compile_pattern(pattern)
        except ValueError:
            continue
        Language.of_pattern(pattern)

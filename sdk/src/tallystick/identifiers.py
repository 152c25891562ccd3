"""The arguments that name objects: whose those objects must be, and where the names must come from.

Both are fields of a contract, `ownership` and `returned`. Pure: here is found which identifiers a
call names and which a result holds, and the gates decide what follows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from tallystick.canonical import (
    Json,
    Missing,
    pointer_join,
    pointer_split,
    resolve_pointer,
    values_in,
)

Identifier: TypeAlias = str | int
"""What names an object. The text `"7"` and the number 7 are two."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """An argument that names an object with an owner, who must be the one that the run acts for.

    Args:
        argument: The place in the arguments, a JSON Pointer; see `named_at`.
        kind: What the object is, for the sentence to the model.
        subject: The member of the run's subject that must equal the owner.
        tool: The PURE tool whose result says who owns it; without it, only the application can say.
        asked: Where that tool takes the identifier, a JSON Pointer into its arguments.
        owner: Where its result names the owner, a JSON Pointer.
    """

    argument: str
    kind: str
    subject: str
    tool: str | None
    asked: str | None
    owner: str | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Ownership":
        """Read one of the contract's `ownership`."""
        return cls(
            argument=document["argument"],
            kind=document["kind"],
            subject=document["subject"],
            tool=document.get("tool"),
            asked=document.get("asked"),
            owner=document.get("owner"),
        )


@dataclass(frozen=True, slots=True)
class Returned:
    """An argument that names what a tool must have returned in the same run.

    Args:
        argument: The place in the arguments, a JSON Pointer; see `named_at`.
        tools: The tools that count; None for any.
        kind: What the object is, for the sentence to the model; None for the argument's name.
    """

    argument: str
    tools: frozenset[str] | None
    kind: str | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Returned":
        """Read one of the contract's `returned`."""
        tools = document.get("tools")
        named = None if tools is None else frozenset(tools)
        return cls(document["argument"], named, document.get("kind"))


def named_at(arguments: Json, pointer: str) -> Iterator[tuple[str, Json]]:
    """Return what a contract's pointer means in the arguments, each value with its own pointer.

    An array at the end of the pointer, or on the way where the pointer does not say which item,
    means each of its items; a text or a number on the way is taken for the identifier itself, so
    that no shape of the arguments leads past a check. What is not there, and null, names nothing.
    """
    tokens = _tokens(pointer)
    if len(tokens) == 1 and isinstance(arguments, dict):
        value = arguments.get(tokens[0])
        if isinstance(value, str | int):  # as nearly all of them are
            return iter([(pointer, value)])
    return _named(arguments, tokens, ())


# Contracts are few, and their pointers are read at every call.
_tokens = lru_cache(maxsize=4096)(pointer_split)


def _named(
    value: Json, tokens: tuple[str, ...], path: tuple[str | int, ...]
) -> Iterator[tuple[str, Json]]:
    if isinstance(value, list):
        chosen = [int(tokens[0])] if tokens and _is_index(tokens[0]) else range(len(value))
        rest = tokens[1:] if tokens and _is_index(tokens[0]) else tokens
        for index in chosen:
            if index < len(value):
                yield from _named(value[index], rest, (*path, index))
    elif isinstance(value, dict) and tokens:
        if tokens[0] in value:
            yield from _named(value[tokens[0]], tokens[1:], (*path, tokens[0]))
    elif value is not None:
        yield pointer_join(*path), value


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit()


def identifier_of(value: Json) -> Identifier | None:
    """Return the identifier that a value is, or None: only texts and whole numbers name things."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 7.0 is 7, as it is in canonical form
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def asked_for(ownership: Ownership, arguments: Json) -> Identifier | None:
    """Return the identifier that a call of an ownership tool asks for.

    None if it asks for none, or for several at once.
    """
    if ownership.asked is None:
        return None
    asked = [identifier_of(value) for _, value in named_at(arguments, ownership.asked)]
    return asked[0] if len(asked) == 1 else None


def asking_for(ownership: Ownership, identifier: Identifier) -> Json:
    """Return the arguments that ask an ownership tool for an object, as `asked_for` reads them."""
    asked: Json = identifier
    for token in reversed(_tokens(ownership.asked or "")):
        asked = {token: asked}
    return asked


def owner_in(ownership: Ownership, result: Json) -> Identifier | None:
    """Return the owner that a result of an ownership tool names; None if it names none."""
    if ownership.owner is None:
        return None
    owner = resolve_pointer(result, ownership.owner)
    return None if isinstance(owner, Missing) else identifier_of(owner)


def owner_told(
    ownership: Ownership, arguments: Json, result: Json
) -> tuple[Identifier, Identifier | None] | None:
    """Return the identifier that an ownership tool was asked for, and the owner that it named.

    None if it was asked for none, or for several at once.
    """
    asked = asked_for(ownership, arguments)
    return None if asked is None else (asked, owner_in(ownership, result))


def identifiers_in(result: Json) -> Iterator[Identifier]:
    """Yield every identifier that a result holds: its texts, whole numbers and members' names."""
    for value in values_in(result):
        if isinstance(value, dict):
            yield from value
        elif (found := identifier_of(value)) is not None:
            yield found

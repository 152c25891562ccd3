"""The lockfile's text: read strictly, and written byte for byte the same for the same content.

It is made for review and for merges: one tool after the other by name, keys in order, one line for
each fact. Whatever does not look like our own writing is refused, and never repaired.
"""

import json
import math
import re
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Final, NoReturn, cast

from tallystick.canonical import DEPTH_MAX, Json, MalformedJson, parse_json, pointer_join
from tallystick.errors import InvalidContract, LockfileInvalid, TooLarge
from tallystick.lockfile.entry import Entry, Hashes, Lock

FORMAT: Final = 1

_FORMAT_KEY: Final = "tallystick_lock"
# As deep as a contract may be, within the file, its tools and the entry.
_DEPTH_MAX: Final = DEPTH_MAX + 3
_RESTORE: Final = "restore the file from version control"
_HASHES: Final = tuple(each.name for each in fields(Hashes))
_ENTRY_KEYS: Final = frozenset({"accepted_at", "contract", *_HASHES})

_MERGE_MARKER: Final = re.compile(r"^(?:<{7}|\|{7}|={7}|>{7})(?: |\r?$)", re.MULTILINE)
# What only the strict reader tells apart: a surrogate without its partner, and the character NUL.
_DOUBTFUL_ESCAPE: Final = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")


def parse_lock(text: str, *, name: str) -> Lock:
    """Read the text of a lockfile.

    The contracts in it are not judged: `check_hashes` does that, and every import can do without.

    Args:
        text: The file's content.
        name: The file, as messages call it.

    Raises:
        LockfileInvalid: It is no lockfile of this format, with what to do about it.
    """
    value = _read(text, name)
    if not isinstance(value, dict):
        raise _misshapen(name)
    if "_toolpact" in value:
        raise LockfileInvalid(
            f"{name} is a lockfile of toolpact: take its contracts over with"
            f" `tallystick import {name}`"
        )
    number, tools = value.get(_FORMAT_KEY), value.get("tools")
    if type(number) is int and number > FORMAT:
        raise LockfileInvalid(
            f"{name} was written by a newer Tallystick (its format is {number}, this version"
            f" reads {FORMAT}): upgrade the package tallystick"
        )
    if type(number) is not int or number != FORMAT or len(value) > len((_FORMAT_KEY, "tools")):
        raise _misshapen(name)
    if not isinstance(tools, dict):
        raise _misshapen(name, "tools")
    return Lock({tool: _entry(tool, each, name) for tool, each in tools.items()})


def write_lock(lock: Lock) -> str:
    """Write a lockfile: keys in order, two spaces for each level, and one newline at the end.

    Raises:
        InvalidContract: An entry that has no hashes yet holds no valid contract.
        TooLarge: Likewise, for one that exceeds a limit.
    """
    tools = ",\n".join([_written(name, entry) for name, entry in sorted(lock.entries.items())])
    body = f"{{\n{tools}\n  }}" if tools else "{}"
    return f'{{\n  "{_FORMAT_KEY}": {FORMAT},\n  "tools": {body}\n}}\n'


def find_faults(lock: Lock) -> dict[str, str]:
    """Return what is wrong with entries, and what to do, by their key.

    An entry is in order if its contract is a valid one, of that name, with those hashes.
    """
    found = {key: _fault(key, entry) for key, entry in lock.entries.items()}
    return {key: fault for key, fault in found.items() if fault is not None}


def check_hashes(lock: Lock, *, name: str = "tallystick.lock") -> None:
    """Refuse a lockfile in which an entry is not what was accepted.

    Args:
        lock: What the file holds.
        name: The file, as messages call it.

    Raises:
        LockfileInvalid: For the first such entry.
    """
    for key, fault in find_faults(lock).items():
        raise LockfileInvalid(f"{name}: {fault}", facts={"tool": key})


# --- reading --------------------------------------------------------------------------------------


def _read(text: str, name: str) -> Json:
    """Return the JSON value, as strictly as `parse_json` and several times as fast."""
    try:
        value = cast("Json", _DECODER.decode(text))
        if _DOUBTFUL_ESCAPE.search(text):
            parse_json(text, depth_max=_DEPTH_MAX)
        _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise LockfileInvalid(f"{name} {_complaint(text, error)}") from None
    return value


def _complaint(text: str, error: Exception) -> str:
    marker = _MERGE_MARKER.search(text)
    if marker is not None:
        line = text.count("\n", 0, marker.start()) + 1
        return f"has a merge marker in line {line}: finish the merge, and try again"
    match error:
        case _Twice(key=key):
            return f"has {_dumped(key)} twice, as after a merge that kept both: remove one of them"
        case json.JSONDecodeError():
            where = f"line {error.lineno} column {error.colno}"
            return f"is not JSON ({error.msg}, {where}): {_RESTORE}"
        case RecursionError():
            return f"is nested more than {_DEPTH_MAX} deep: {_RESTORE}"
        case MalformedJson():
            return f"is not strict JSON ({error}): {_RESTORE}"
        case _:
            return f"holds a number that is not JSON: {_RESTORE}"


class _Twice(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(next(key for key in keys if keys.count(key) > 1))
    return members


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_constant
)


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(_DEPTH_MAX):
        # Only containers are kept: most of a lockfile is text.
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
    if level:
        raise RecursionError


def _entry(tool: str, value: Json, name: str) -> Entry:
    at = ("tools", tool)
    if not isinstance(value, dict):
        raise _misshapen(name, *at)
    odd = _ENTRY_KEYS ^ (value.keys() - {"source"})
    if odd:
        raise _misshapen(name, *at, min(odd))
    contract = value["contract"]
    if not isinstance(contract, dict):
        raise _misshapen(name, *at, "contract")
    for key in ("name", "version"):
        if not isinstance(contract.get(key), str):
            raise _misshapen(name, *at, "contract", key)
    texts = {key: each for key, each in value.items() if isinstance(each, str)}
    for key in value.keys() - texts.keys() - {"contract"}:
        raise _misshapen(name, *at, key)
    return Entry(
        document=contract,
        accepted_at=texts["accepted_at"],
        source=texts.get("source"),
        stated_hashes=Hashes(**{key: texts[key] for key in _HASHES}),
    )


def _misshapen(name: str, *place: str) -> LockfileInvalid:
    where = f" at {pointer_join(*place)}" if place else ""
    return LockfileInvalid(f"{name} does not have the shape of a lockfile{where}: {_RESTORE}")


# --- writing --------------------------------------------------------------------------------------


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


# Each import of a new tool writes the whole file, of which all but one entry is as it was.
@lru_cache(maxsize=4096)
def _written(name: str, entry: Entry) -> str:
    source = {} if entry.source is None else {"source": entry.source}
    members = {
        "accepted_at": entry.accepted_at,
        "contract": entry.document,
        **asdict(entry.hashes),
        **source,
    }
    return f"    {_dumped(name)}: {_dumped(members)}".replace("\n", "\n    ")


# --- checking -------------------------------------------------------------------------------------


def _fault(key: str, entry: Entry) -> str | None:
    accept = f"as after a merge or an edit by hand: run `tallystick accept {key}`"
    if entry.name != key:
        return f"the entry {key} holds the contract of {entry.name}, {accept}"
    try:
        has = Hashes.of(entry.contract)
    except (InvalidContract, TooLarge) as error:
        return f"the contract of {key} is not valid ({error.detail.removesuffix('.')}): {_RESTORE}"
    for each in _HASHES:
        if getattr(has, each) != getattr(entry.hashes, each):
            return f"the {each} of {key} is not that of its contract, {accept}"
    return None

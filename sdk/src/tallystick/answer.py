"""What a model is answered: one shape for a result and for an error, never longer than its limit.

    {"ok": true, "result": ...}
    {"ok": false, "error": {"code": "...", "message": "...", "retryable": false, "pointer": "..."}}

An answer that is too long is cut so that it is still valid JSON, and says what was left out:
`"truncated": {"characters": 120, "items": 3, "members": 2}`. Pure.
"""

import json
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json
from tallystick.cutting import Cut, cut, cut_text
from tallystick.errors import (
    LocalRefusal,
    NeedsHuman,
    Outage,
    Refusal,
    ServiceTimeout,
    ServiceUnavailable,
    ToolContractNotFound,
    ToolFailed,
)

LIMIT: Final = 4000
LIMIT_MIN: Final = 64

# Below it, a sentence says less than the fields that would have to go for it.
_MESSAGE_CHARS_MIN: Final = 24

_WAIT: Final = "Do not call it again until a person has approved it."


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Why a call did not give a result, as a model is told.

    Args:
        code: The stable code.
        message: One or two sentences that a model can act on.
        retryable: Whether the same call may help, made again at once.
        pointer: Where in the arguments, a JSON Pointer.
    """

    code: str
    message: str
    retryable: bool
    pointer: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model is answered.

    Args:
        result: The result, strict JSON; None where there is an error.
        error: Why there is none.
        limit: How many characters the text may have.
    """

    result: Json = None
    error: ErrorAnswer | None = None
    limit: int = LIMIT

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.error is None

    def to_json(self) -> dict[str, Json]:
        """Return the whole answer as a JSON object, however long it is."""
        if self.error is None:
            return {"ok": True, "result": self.result}
        return {"ok": False, "error": _fields(self.error)}

    def text(self, limit: int | None = None) -> str:
        """Return the answer as JSON text of at most so many characters, whatever it holds.

        Args:
            limit: Instead of the answer's own limit; at least `LIMIT_MIN`.

        Raises:
            ValueError: The limit is below `LIMIT_MIN`.
        """
        most = self.limit if limit is None else limit
        if most < LIMIT_MIN:
            raise ValueError(f"an answer has room for {LIMIT_MIN} characters at least")
        whole = _written(self.to_json())
        if len(whole) <= most:
            return whole
        if self.error is None:
            return _cut_result(self.result, most, len(whole))
        return _cut_error(self.error, most)

    def __str__(self) -> str:
        return self.text()


def refused(error: Refusal | Outage | LocalRefusal, limit: int = LIMIT) -> Answer:
    """Return what a model is answered for a refusal, of whichever class it is.

    A program may wait for what is `retryable` of a class: a person, an operator, the registry. A
    model that is told so asks again at once, and is told it of a failed tool alone.
    """
    retryable = False
    if isinstance(error, ServiceTimeout | ServiceUnavailable | ToolFailed):
        retryable = error.facts.get("retryable", error.retryable) is True
    told = ErrorAnswer(told_code(error), told_message(error), retryable, error.pointer)
    return Answer(None, told, limit)


def told_code(error: Refusal | Outage | LocalRefusal) -> str:
    """Return the code that a model is told: a contract's own where a tool failed by it."""
    match error:
        case ToolContractNotFound():
            return "unknown_tool"
        case ToolFailed():
            return str(error.facts.get("code", error.code))
        case _:
            return error.code


def told_message(error: Refusal | Outage | LocalRefusal) -> str:
    """Return the sentence that a model is told, with what it has to do where that is to wait."""
    return f"{error.detail} {_WAIT}" if isinstance(error, NeedsHuman) else error.detail


def _written(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _cut_result(result: Json, limit: int, length: int) -> str:
    frame = len(_written({"ok": True, "result": 0})) - 1
    # More than everything cannot be left out, so that this room is always enough.
    told = len(_written(_told(Cut(None, length, length, length)))) - 1
    kept = cut(result, limit - frame - told) if limit - frame - told >= told else None
    if kept is None:
        kept = _emptied(result, limit - frame)
    return _written({"ok": True, "result": kept.value, **_told(kept)})


def _emptied(result: Json, room: int) -> Cut:
    """Return what is left where the room is for one count alone: of the outermost value."""
    match result:
        case dict():
            return Cut({}, members=len(result))
        case list():
            return Cut([], items=len(result))
        case _:
            assert isinstance(result, str), "numbers and constants are shorter than any limit"
            told = len(_written(_told(Cut(None, characters=len(result))))) - 1
            return cut_text(result, room - told)


def _told(kept: Cut) -> dict[str, Json]:
    counts: dict[str, Json] = {
        name: count
        for name, count in (
            ("characters", kept.characters),
            ("items", kept.items),
            ("members", kept.members),
        )
        if count
    }
    return {"truncated": counts}


def _cut_error(error: ErrorAnswer, limit: int) -> str:
    """Return as much of an error as there is room for: its code before all else."""
    needed = min(_MESSAGE_CHARS_MIN, len(_written(error.message)))
    for without in (set[str](), {"pointer"}, {"pointer", "retryable"}):
        fields: dict[str, Json] = {
            name: value for name, value in _fields(error).items() if name not in without
        }
        room = limit - len(_written({"ok": False, "error": {**fields, "message": ""}})) + len('""')
        if room >= needed:
            fields["message"] = cut_text(error.message, room).value
            return _written({"ok": False, "error": fields})
    room = limit - len(_written({"ok": False, "error": {"code": ""}})) + len('""')
    return _written({"ok": False, "error": {"code": cut_text(error.code, room).value}})


def _fields(error: ErrorAnswer) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
    }
    return {**fields, "pointer": error.pointer} if error.pointer else fields

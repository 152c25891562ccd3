"""Documents as people write them: JSON, and the part of YAML that means the same.

Of YAML 1.2 the core schema is read (https://yaml.org/spec/1.2.2/#103-core-schema). What JSON cannot
say is refused, not guessed: anchors and aliases, other tags, keys that are not strings, a second
document. A date stays the text that it is.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, cast

from tallystick.canonical import (
    DEPTH_MAX,
    Json,
    MalformedJson,
    check_json,
    parse_json,
    pointer_join,
)
from tallystick.errors import TooLarge

DOCUMENT_BYTES_MAX: Final = 1024 * 1024

_CONSTANTS: Final[dict[str, Json]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER: Final = re.compile("[-+]?[0-9]+")
_OTHER_BASE: Final = re.compile("0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER_CHARS_MAX: Final = 32

_TAG: Final = "tag:yaml.org,2002:"
_KEY_FAULT: Final = "a key that is not a string: quote it"
_TAG_FAULT: Final = "a tag that does not fit the value, or that JSON has no type for"
_COLLECTION_TAGS: Final = {"MappingStart": f"{_TAG}map", "SequenceStart": f"{_TAG}seq"}
_STRING_TAGS: Final = ("!", f"{_TAG}str")
_SCALAR_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}


def parse_document(text: str, *, format: Literal["json", "yaml"]) -> Json:  # noqa: A002
    """Read one document.

    Raises:
        MalformedJson: It says something that JSON cannot, with the JSON Pointer and the line.
        TooLarge: It is longer than `DOCUMENT_BYTES_MAX` bytes.
    """
    if len(text.encode(errors="surrogatepass")) > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"a document is larger than {DOCUMENT_BYTES_MAX} bytes", pointer="")
    return parse_json(text) if format == "json" else _parse_yaml(text)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in a document that JSON cannot say.

    Args:
        detail: What, in one sentence.
        pointer: Where, a JSON Pointer.
        mark: Where in the text.
    """

    detail: str
    pointer: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A YAML document as far as it can be read, with the place of everything in it.

    Args:
        value: The document; where something is wrong, what remains of it.
        marks: Where each value begins, by its JSON Pointer.
        keys: Where the key of each member begins, by the member's pointer.
        flaws: Everything that is wrong, in order.
        is_whole: Whether it was read to its end.
    """

    value: Json
    marks: Mapping[str, Mark]
    keys: Mapping[str, Mark]
    flaws: tuple[Flaw, ...]
    is_whole: bool


def parse_marked(text: str) -> MarkedDocument:
    """Read one YAML document as `parse_document` does, but past its flaws, and keep all places.

    The caller bounds the text's length.
    """
    from ruamel.yaml.error import YAMLError

    builder = _Marker(_events(text))
    value, is_whole = None, True
    try:
        value = builder.document()
    except MalformedJson:
        is_whole = False  # its flaw is kept
    except YAMLError as error:
        detail, mark = _yaml_fault(error)
        builder.flaws.append(Flaw(detail, builder.pointer, mark or Mark(1, 1)))
        is_whole = False
    return MarkedDocument(value, builder.marks, builder.keys, tuple(builder.flaws), is_whole)


def _parse_yaml(text: str) -> Json:
    from ruamel.yaml.error import YAMLError

    builder = _Builder(_events(text))
    try:
        return builder.document()
    except YAMLError as error:
        detail, mark = _yaml_fault(error)
        where = f", line {mark.line} column {mark.column}" if mark else ""
        raise MalformedJson(detail + where, builder.pointer if mark else "") from None


def _yaml_fault(error: Exception) -> tuple[str, Mark | None]:
    from ruamel.yaml.error import MarkedYAMLError

    if not isinstance(error, MarkedYAMLError):
        return f"not YAML: {str(error).partition(chr(10))[0]}", None
    fault = cast("Any", error)
    mark = fault.problem_mark or fault.context_mark
    return f"not YAML: {fault.problem}", Mark(mark.line + 1, mark.column + 1) if mark else None


@dataclass(frozen=True, slots=True)
class _Event:
    """One event of the YAML parser, with types."""

    kind: str
    mark: Mark
    anchor: str | None
    tag: str | None
    text: str
    is_plain: bool
    version: tuple[int, int] | None


def _events(text: str) -> Iterator[_Event]:
    # Events, not nodes: an alias or a nest of brackets is refused where it begins, before anything
    # grows or recurs.
    from ruamel.yaml import YAML

    parser: Any = YAML(typ="safe", pure=True)
    for event in parser.parse(text):
        tag = getattr(event, "tag", None)
        yield _Event(
            kind=type(event).__name__.removesuffix("Event"),
            mark=Mark(event.start_mark.line + 1, event.start_mark.column + 1),
            anchor=getattr(event, "anchor", None),
            tag=tag,
            text=getattr(event, "value", ""),
            is_plain=tag is None and getattr(event, "style", None) in (None, ""),
            version=getattr(event, "version", None),
        )


class _Builder:
    """Makes a JSON value of the events of one document, and knows where it stands."""

    def __init__(self, events: Iterator[_Event]) -> None:
        self._events = events
        self._path: list[str | int] = []

    @property
    def pointer(self) -> str:
        """The place that was reached, a JSON Pointer."""
        return pointer_join(*self._path)

    def document(self) -> Json:
        """Build the one document."""
        next(self._events)  # the start of the stream
        start = next(self._events)
        if start.kind == "StreamEnd":
            self._refuse(start, "the document is empty")
            return None
        if start.version not in (None, (1, 2)):
            self._refuse(start, "only YAML 1.2 is read")
        value = self._node(next(self._events))
        next(self._events)  # the end of the document
        end = next(self._events)
        if end.kind != "StreamEnd":
            self._refuse(end, "a second document begins")
        return value

    def _refuse(self, event: _Event, detail: str) -> None:
        """Refuse what one can read past."""
        self._stop(event, detail)

    def _stop(self, event: _Event, detail: str) -> NoReturn:
        """Refuse what cannot be read past: the parser takes long over what is nested deeply."""
        raise MalformedJson(f"{detail}, line {event.mark.line}", self.pointer)

    def _node(self, event: _Event) -> Json:
        if event.kind == "Alias":
            self._refuse(event, "an alias, which JSON has not: write the value out")
            return None
        if event.anchor is not None:
            self._refuse(event, "an anchor, which JSON has not")
        if event.kind == "Scalar":
            return self._scalar(event)
        if event.tag not in (None, _COLLECTION_TAGS[event.kind]):
            self._refuse(event, _TAG_FAULT)
        if len(self._path) >= DEPTH_MAX:
            self._stop(event, f"nested more than {DEPTH_MAX} deep")
        return self._mapping() if event.kind == "MappingStart" else self._sequence()

    def _sequence(self) -> Json:
        items: list[Json] = []
        while (event := next(self._events)).kind != "SequenceEnd":
            self._path.append(len(items))
            items.append(self._node(event))
            self._path.pop()
        return items

    def _mapping(self) -> Json:
        members: dict[str, Json] = {}
        while (event := next(self._events)).kind != "MappingEnd":
            key = self._key(event)
            self._path.append(key)
            if key in members:
                self._refuse(event, "a key that the object has already")
            value = self._node(next(self._events))
            members.setdefault(key, value)
            self._path.pop()
        return members

    def _key(self, event: _Event) -> str:
        if event.kind not in ("Scalar", "Alias"):
            self._stop(event, _KEY_FAULT)
        key = self._node(event)
        if isinstance(key, str):
            return key
        self._refuse(event, _KEY_FAULT)
        return event.text

    def _scalar(self, event: _Event) -> Json:
        value = _resolve(event.text) if event.is_plain else _paired(event.text)
        if event.tag is not None and event.tag not in _STRING_TAGS:
            value = _resolve(event.text)
            if type(value) not in _SCALAR_TAGS.get(event.tag, ()):
                self._refuse(event, _TAG_FAULT)
        try:
            return check_json(value)
        except MalformedJson as error:
            self._refuse(event, error.detail)
            return None


class _Marker(_Builder):
    """Keeps the place of everything, and goes on where a builder stops."""

    def __init__(self, events: Iterator[_Event]) -> None:
        super().__init__(events)
        self.marks: dict[str, Mark] = {}
        self.keys: dict[str, Mark] = {}
        self.flaws: list[Flaw] = []

    def _refuse(self, event: _Event, detail: str) -> None:
        if not any(flaw.mark == event.mark for flaw in self.flaws[-1:]):
            self.flaws.append(Flaw(detail, self.pointer, event.mark))

    def _stop(self, event: _Event, detail: str) -> NoReturn:
        self._refuse(event, detail)
        super()._stop(event, detail)

    def _node(self, event: _Event) -> Json:
        self.marks.setdefault(self.pointer, event.mark)
        return super()._node(event)

    def _key(self, event: _Event) -> str:
        key = super()._key(event)
        self.keys.setdefault(f"{self.pointer}{pointer_join(key)}", event.mark)
        return key


def _paired(text: str) -> str:
    """Return a text in which two escaped surrogates are one character, as they are in JSON."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _resolve(text: str) -> Json:
    """Return what a plain scalar means in the core schema of YAML 1.2."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        # Python refuses, and would take quadratic time over, very long runs of digits.
        return int(text) if len(text) <= _INTEGER_CHARS_MAX else 10**_INTEGER_CHARS_MAX
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return math.nan
    return text

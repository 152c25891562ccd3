"""The form of an export: lines of JSON that whoever has the file can verify, written and read.

    {"header": {"format": "tallystick-audit-export-v1", "tenant": ..., "exported_at": ..., "keys":
        {key id: public key}}}
    then for each seal, oldest first:
        {"seal": {"statement": text, "signature": ...}}
        {"leaves": [hash, ...]}           of its leaves, a thousand a line
        {"row": {...}, "table": ...}      its records: each line is, byte for byte, what was hashed
    then the records that no seal covers yet:
        {"unsealed": {"row": {...}, "table": ...}}
    {"end": {"seals": count, "sealed": count, "unsealed": count, "position": number}}

Keys, hashes and signatures are hexadecimal; ``position`` is the number of the next transaction. A
file may come from anyone: a line of another form, or a larger one than these bounds, is refused.
Pure.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from audit.merkle import HASH_BYTES, leaf_hash
from audit.record import Record
from audit.seal import Count, Seal
from tallystick.canonical import Json, MalformedJson, canonical_bytes, parse_json

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
LEAVES_A_LINE: Final = 1000
KEYS_MAX: Final = 100
"""How many public keys a header names at most."""
_DEPTH_MAX: Final = 4

PublicKey = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class UnreadableExport(ValueError):
    """A file is not an export, or only a part of one.

    Args:
        line: The number of the line, from 1.
        detail: What is wrong with it, in words that quote nothing.
    """

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line
        self.detail = detail


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Header(_Line):
    """Whose records these are, and the public keys that the service says it signs with."""

    format: Literal["tallystick-audit-export-v1"] = "tallystick-audit-export-v1"
    tenant: str
    exported_at: str
    keys: Annotated[dict[str, PublicKey], Field(max_length=KEYS_MAX)]


class SealLine(_Line):
    """A statement as it was signed."""

    statement: str
    signature: Signature


class End(_Line):
    """That nothing is missing behind it, as far as the writer knew."""

    seals: Count
    sealed: Count
    unsealed: Count
    position: Count


class _RowLine(_Line):
    table: str
    row: dict[str, str]


class _Any(_Line):
    """A line: exactly one of these."""

    header: Header | None = None
    seal: SealLine | None = None
    leaves: Annotated[list[Hash], Field(max_length=LEAVES_A_LINE)] | None = None
    unsealed: _RowLine | None = None
    end: End | None = None


@dataclass(frozen=True, slots=True)
class Leaves:
    """Hashes of leaves, one after another."""

    hashes: bytes


@dataclass(frozen=True, slots=True)
class Row:
    """A record, and the hash of the line that it stands in."""

    record: Record
    leaf: bytes
    is_sealed: bool


Line: TypeAlias = Header | SealLine | Leaves | Row | End

_LINE: Final = TypeAdapter[_RowLine | _Any](_RowLine | _Any)


# --- writing --------------------------------------------------------------------------------------


def header_line(header: Header) -> bytes:
    """Write the first line."""
    return _written({"header": header.model_dump()})


def seal_lines(seal: Seal) -> bytes:
    """Write a seal and the hashes of its leaves."""
    lines = [_written({"seal": {"statement": seal.text, "signature": seal.signature.hex()}})]
    step = LEAVES_A_LINE * HASH_BYTES
    for start in range(0, len(seal.leaf_hashes), step):
        hashes = split_hashes(seal.leaf_hashes[start : start + step])
        lines.append(_written({"leaves": [each.hex() for each in hashes]}))
    return b"".join(lines)


def sealed_line(record: Record) -> bytes:
    """Write a record that stands under the seal before it."""
    return record.canonical() + b"\n"


def unsealed_line(record: Record) -> bytes:
    """Write a record that no seal covers yet."""
    return _written({"unsealed": {"table": record.table, "row": dict(record.row)}})


def end_line(end: End) -> bytes:
    """Write the last line."""
    return _written({"end": end.model_dump()})


def split_hashes(hashes: bytes) -> Generator[bytes]:
    """Give the hashes that stand one after another."""
    for start in range(0, len(hashes), HASH_BYTES):
        yield hashes[start : start + HASH_BYTES]


def _written(value: Json) -> bytes:
    return canonical_bytes(value) + b"\n"


# --- reading --------------------------------------------------------------------------------------


def read_lines(file: BinaryIO) -> Iterator[tuple[int, Line]]:
    """Read a file line by line, each with its number.

    Raises:
        UnreadableExport: A line is none of an export, or too large, or the last one is cut off.
    """
    number = 0
    while text := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(text) > LINE_BYTES_MAX:
            raise UnreadableExport(number, f"it has more than {LINE_BYTES_MAX} bytes")
        if not text.endswith(b"\n"):
            raise UnreadableExport(number, "it is cut off")
        yield number, _read(number, text[:-1])


def _read(number: int, text: bytes) -> Line:
    try:
        line = _LINE.validate_python(parse_json(text, depth_max=_DEPTH_MAX))
    except MalformedJson as fault:
        raise UnreadableExport(number, fault.detail) from None
    except ValidationError:
        raise UnreadableExport(number, "it is no line of an export") from None
    match line:
        case _RowLine():
            return Row(Record(line.table, line.row), leaf_hash(text), is_sealed=True)
        case _Any(header=Header() as header, seal=None, leaves=None, unsealed=None, end=None):
            return header
        case _Any(header=None, seal=SealLine() as seal, leaves=None, unsealed=None, end=None):
            return seal
        case _Any(header=None, seal=None, leaves=list(leaves), unsealed=None, end=None):
            return Leaves(bytes.fromhex("".join(leaves)))
        case _Any(header=None, seal=None, leaves=None, unsealed=_RowLine() as row, end=None):
            return Row(Record(row.table, row.row), leaf_hash(text), is_sealed=False)
        case _Any(header=None, seal=None, leaves=None, unsealed=None, end=End() as end):
            return end
        case _:
            raise UnreadableExport(number, "it is no line of an export")

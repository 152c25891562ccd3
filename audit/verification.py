"""Verifies an export: needs the file, and neither the service nor its database. Pure.

A seal's signed root is the authority on its records. The list of hashes beside it only tells which
of them was changed, and is itself held to the root.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from audit.export import (
    End,
    Header,
    Leaves,
    Line,
    Row,
    SealLine,
    UnreadableExport,
    split_hashes,
)
from audit.merkle import HASH_BYTES, Tree, tree_root
from audit.record import WRITTEN_IN
from audit.seal import Statement, digest_of, digest_text, is_signed_by

FAULTS_MAX: Final = 100
"""How many faults are told; all are counted."""
LEAVES_MAX: Final = 1_000_000
"""How many records one seal may cover here: their hashes are held in memory."""
_NAME_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was sealed.

    ``line`` is where it was met, ``seal`` the number of the seal, ``row`` the table and key.
    """

    code: str
    detail: str
    line: int
    seal: int | None = None
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was found: the export is verified if there is no fault."""

    tenant: str
    exported_at: str
    seals: int
    sealed: int
    unsealed: int
    head: str | None
    trusted_keys: tuple[str, ...]
    keys_were_given: bool
    faults: tuple[Fault, ...]
    faults_count: int

    @property
    def is_verified(self) -> bool:
        """Whether everything is as it was sealed."""
        return self.faults_count == 0

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"is_verified": self.is_verified, **asdict(self)}


def verify(
    lines: Iterable[tuple[int, Line]], *, trusted: Sequence[bytes] = (), head: str | None = None
) -> Report:
    """Verify what an export's lines say.

    Args:
        lines: The lines with their numbers, as `audit.export.read_lines` gives them.
        trusted: The public keys to trust, 32 bytes each. Without any, those that the export itself
            names are taken: then it only is consistent with itself.
        head: The digest of a seal that was written down elsewhere, and must be part of the chain.

    Raises:
        UnreadableExport: The lines are not in the order of an export, or the end is missing.
    """
    number, state = 0, None
    for number, line in lines:
        if state is None:
            if not isinstance(line, Header):
                raise UnreadableExport(number, "an export begins with its header")
            state = _Verifier(line, trusted, head)
        elif state.is_over:
            raise UnreadableExport(number, "there is something behind the end")
        else:
            state.take(number, line)
    if state is None or not state.is_over:
        raise UnreadableExport(number + 1, "the end is missing: the file was cut off")
    return state.report()


@dataclass(slots=True)
class _Faults:
    told: list[Fault] = field(default_factory=list[Fault])
    count: int = 0

    def add(
        self, code: str, detail: str, line: int, seal: int | None = None, row: str | None = None
    ) -> None:
        self.count += 1
        if len(self.told) < FAULTS_MAX:
            self.told.append(Fault(code, detail, line, seal, row))


class _Verifier:
    """Takes one line after another."""

    def __init__(self, header: Header, trusted: Sequence[bytes], head: str | None) -> None:
        self.is_over = False
        self._header = header
        self._were_given = bool(trusted)
        self._own = {key_id: bytes.fromhex(key) for key_id, key in header.keys.items()}
        self._trusted = tuple(trusted) if trusted else tuple(self._own.values())
        self._head = head
        self._head_was_met = head is None
        self._last: tuple[Statement, str] | None = None
        self._batch: _Batch | None = None
        self._seals = self._sealed = self._unsealed = 0
        self._newest = (-1, 0, "")
        self._faults = _Faults()

    def take(self, number: int, line: Line) -> None:
        match line:
            case SealLine() if not self._unsealed:
                self._close_batch(number)
                self._open_batch(number, line)
            case Leaves() if self._batch is not None and not self._batch.has_rows:
                self._batch.add_leaves(number, line.hashes)
            case Row(is_sealed=True) if self._batch is not None:
                self._sealed += 1
                self._batch.add_row(number, line)
            case Row(is_sealed=False):
                self._close_batch(number)
                self._take_unsealed(number, line)
            case End():
                self._close_batch(number)
                self._finish(number, line)
            case _:
                raise UnreadableExport(number, "it has no place here")

    def report(self) -> Report:
        return Report(
            tenant=self._header.tenant,
            exported_at=self._header.exported_at,
            seals=self._seals,
            sealed=self._sealed,
            unsealed=self._unsealed,
            head=self._last[1] if self._last else None,
            trusted_keys=tuple(key.hex() for key in self._trusted),
            keys_were_given=self._were_given,
            faults=tuple(self._faults.told),
            faults_count=self._faults.count,
        )

    def _open_batch(self, number: int, line: SealLine) -> None:
        try:
            statement = Statement.parse(line.statement)
        except ValueError as fault:
            raise UnreadableExport(number, str(fault)) from None
        if statement.leaves > LEAVES_MAX:
            raise UnreadableExport(number, f"the seal covers more than {LEAVES_MAX} records")
        self._seals += 1
        digest = digest_of(line.statement)
        self._check_chain(number, statement)
        self._check_signature(number, statement, line)
        self._head_was_met |= digest == self._head
        self._last = statement, digest
        self._batch = _Batch(statement, number, self._faults)

    def _check_chain(self, line: int, statement: Statement) -> None:
        seal, last = statement.number, self._last[0] if self._last else None
        follows = last.number + 1 if last else 1
        if statement.tenant != self._header.tenant:
            self._faults.add("tenant_differs", "The seal is another tenant's.", line, seal)
        if seal != follows:
            detail = f"Seal {follows} should stand here: seals were removed, repeated or reordered."
            self._faults.add("seal_missing", detail, line, seal)
        elif statement.previous != (self._last[1] if self._last else None):
            detail = "It does not name the seal before it: one of the two was changed."
            self._faults.add("chain_broken", detail, line, seal)
        elif statement.since != (last.upto if last else 0) or statement.since >= statement.upto:
            detail = "It does not begin where the seal before it ends."
            self._faults.add("range_broken", detail, line, seal)

    def _check_signature(self, line: int, statement: Statement, sealed: SealLine) -> None:
        # Of the export's own keys the one that the seal names: a file that names many is no work.
        named = [self._own[statement.key_id]] if statement.key_id in self._own else []
        signature = bytes.fromhex(sealed.signature)
        keys = self._trusted if self._were_given else named
        if not any(is_signed_by(key, sealed.statement, signature) for key in keys):
            detail = "No trusted key has signed it: it was changed, or made with another key."
            self._faults.add("signature_invalid", detail, line, statement.number)

    def _close_batch(self, number: int) -> None:
        if self._batch is not None:
            self._batch.close(number)
            self._batch = None

    def _take_unsealed(self, number: int, row: Row) -> None:
        self._unsealed += 1
        written_in = _written_in(row)
        self._newest = max(self._newest, (written_in, number, _name(row)))
        if self._last and written_in < self._last[0].upto:
            detail = "It stands as not sealed yet, and is of a transaction that was sealed."
            self._faults.add("row_added", detail, number, row=_name(row))

    def _finish(self, number: int, end: End) -> None:
        self.is_over = True
        counted = self._seals, self._sealed, self._unsealed
        if counted != (end.seals, end.sealed, end.unsealed):
            detail = "There are not as many seals and records as were written: some were removed."
            self._faults.add("count_differs", detail, number)
        written_in, line, row = self._newest
        if written_in >= end.position:
            detail = "No transaction of its number has begun: it would never be sealed."
            self._faults.add("row_added", detail, line, row=row)
        if not self._head_was_met:
            detail = (
                "No seal has the digest that was given: the chain was cut off before it, or was"
                " made anew."
            )
            self._faults.add("head_missing", detail, number)


@dataclass(frozen=True, slots=True)
class _Odd:
    """A row that did not come in its turn; a stranger stands where ``at`` of the list should."""

    code: str
    line: int
    row: str
    at: int = -1


_ODD: Final = {
    "row_added": "It was not there when the seal was made.",
    "row_changed": "It was changed after it was sealed.",
    "row_out_of_order": "It stands in another place than it had.",
    "row_repeated": "It stands here once more.",
}


class _Batch:
    """The records under one seal, held to its list of hashes and to its root."""

    def __init__(self, statement: Statement, line: int, faults: _Faults) -> None:
        self.has_rows = False
        self._statement = statement
        self._line = line
        self._faults = faults
        self._hashes = bytearray()
        self._tree = Tree()
        self._at = 0  # how far the list was followed
        self._missing: set[int] = set()
        self._odd: list[_Odd] = []
        self._odd_count = 0
        self._places: dict[bytes, int] | None = None

    def add_leaves(self, line: int, hashes: bytes) -> None:
        if len(self._hashes) + len(hashes) > LEAVES_MAX * HASH_BYTES:
            raise UnreadableExport(line, f"the seal lists more than {LEAVES_MAX} hashes")
        self._hashes += hashes

    def add_row(self, line: int, row: Row) -> None:
        self.has_rows = True
        self._tree.add(row.leaf)
        if not self._statement.since <= _written_in(row) < self._statement.upto:
            detail = "It is of a transaction that this seal does not cover."
            self._fault("row_misplaced", detail, line, _name(row))
        start = self._at * HASH_BYTES
        if bytes(self._hashes[start : start + HASH_BYTES]) == row.leaf:
            self._at += 1
        else:
            self._take_out_of_turn(line, row)

    def _take_out_of_turn(self, line: int, row: Row) -> None:
        if self._places is None:
            self._places = {leaf: at for at, leaf in enumerate(split_hashes(bytes(self._hashes)))}
        place = self._places.get(row.leaf)
        if place is None:
            self._note(_Odd("row_added", line, _name(row), self._at))
        elif place >= self._at:
            self._missing.update(range(self._at, place))
            self._at = place + 1
        elif place in self._missing:
            self._missing.remove(place)
            self._note(_Odd("row_out_of_order", line, _name(row)))
        else:
            self._note(_Odd("row_repeated", line, _name(row)))

    def _note(self, odd: _Odd) -> None:
        self._odd_count += 1
        if len(self._odd) < FAULTS_MAX:
            self._odd.append(odd)

    def close(self, line: int) -> None:
        """Compare the whole, and name what differs."""
        statement, count = self._statement, len(self._hashes) // HASH_BYTES
        root = digest_text(tree_root(split_hashes(bytes(self._hashes))))
        if (root, count) != (statement.root, statement.leaves):
            detail = "Its list of hashes is not the one that was signed."
            self._fault("leaf_list_changed", detail, self._line)
        if digest_text(self._tree.root()) == statement.root:
            return  # What the list makes of the rows is nothing then.
        self._missing.update(range(self._at, count))
        if not (self._odd or self._missing):
            self._fault("rows_differ", "Its records are not those that were sealed.", self._line)
        for odd in self._paired():
            self._fault(odd.code, _ODD[odd.code], odd.line, odd.row)
        untold = self._odd_count - len(self._odd)
        self._faults.count += untold
        for place in sorted(self._missing)[untold:]:
            self._fault("row_removed", f"Record {place + 1} of {count} was removed.", line)

    def _paired(self) -> Iterator[_Odd]:
        """Tell a row that was changed from one that was added: the one it was is missing.

        The n-th stranger at one place stands for the n-th hash that is missing from there on.
        """
        before, run = -1, 0
        for odd in self._odd:
            if odd.at >= 0:
                before, run = odd.at, run + 1 if odd.at == before else 0
                if odd.at + run in self._missing:
                    self._missing.remove(odd.at + run)
                    yield replace(odd, code="row_changed")
                    continue
            yield odd

    def _fault(self, code: str, detail: str, line: int, row: str | None = None) -> None:
        self._faults.add(code, detail, line, self._statement.number, row)


def _name(row: Row) -> str:
    return row.record.name[:_NAME_CHARS_MAX]


def _written_in(row: Row) -> int:
    text = row.record.row.get(WRITTEN_IN, "")
    # Nineteen digits hold every number of PostgreSQL's bigint.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else -1  # noqa: PLR2004

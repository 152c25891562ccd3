"""An export as a service would write it, made without one."""

from uuid import UUID

from audit.export import (
    End,
    Header,
    end_line,
    header_line,
    seal_lines,
    sealed_line,
    unsealed_line,
)
from audit.merkle import tree_root
from audit.record import Record
from audit.seal import Seal, Statement, digest_text, public_keys, sign, signing_key
from kernel.keys import KeyRing

TENANT = UUID(int=7)
KEYS = KeyRing("k1", {"k1": bytes(range(32))})
TRUSTED = list(public_keys(KEYS, TENANT).values())
WIDTH = 10


def a_record(name: str, written_in: int) -> Record:
    return Record(
        "registry_event", {"tenant_id": "t", "event_id": name, "written_in": str(written_in)}
    )


def a_seal(last: Seal | None, records: list[Record], *, keys: KeyRing = KEYS) -> Seal:
    before = Statement.parse(last.text) if last else None
    leaves = [record.leaf() for record in records]
    statement = Statement(
        tenant=str(TENANT),
        number=before.number + 1 if before else 1,
        previous=last.digest if last else None,
        since=before.upto if before else 0,
        upto=(before.upto if before else 0) + WIDTH,
        leaves=len(leaves),
        root=digest_text(tree_root(leaves)),
        sealed_at="2026-11-30T12:00:00.000000Z",
        key_id="k1",
    )
    text = statement.to_text()
    return Seal(text, sign(signing_key(keys, "k1", TENANT), text), b"".join(leaves))


def an_export(*sizes: int, unsealed: int = 0) -> list[bytes]:
    """Return the lines of an export with seals over so many records, and some that have none."""
    keys = {"k1": TRUSTED[0].hex()}
    lines = [header_line(Header(tenant=str(TENANT), exported_at="now", keys=keys))]
    last: Seal | None = None
    for number, size in enumerate(sizes):
        records = [a_record(f"{number}-{n}", number * WIDTH + n % WIDTH) for n in range(size)]
        last = a_seal(last, records)
        lines += seal_lines(last).splitlines(keepends=True)
        lines += map(sealed_line, records)
    end = len(sizes) * WIDTH
    lines += [unsealed_line(a_record(f"open-{n}", end)) for n in range(unsealed)]
    counts = End(seals=len(sizes), sealed=sum(sizes), unsealed=unsealed, position=end + 1)
    return [*lines, end_line(counts)]

"""What a verifier finds in a file, and which files it refuses to read."""

import io
import json
import tracemalloc
from collections.abc import Callable

import pytest

from audit.export import KEYS_MAX, LINE_BYTES_MAX, UnreadableExport, read_lines
from audit.merkle import leaf_hash
from audit.seal import digest_of
from audit.verification import FAULTS_MAX, Report, verify
from kernel.keys import KeyRing
from tests.unit.audit.builders import TRUSTED, a_record, a_seal, an_export

Lines = list[bytes]


def checked(lines: Lines, head: str | None = None) -> Report:
    return verify(read_lines(io.BytesIO(b"".join(lines))), trusted=TRUSTED, head=head)


def found(lines: Lines) -> set[tuple[str, int | None, str | None]]:
    return {(fault.code, fault.seal, fault.row) for fault in checked(lines).faults}


def is_row(line: bytes) -> bool:
    return line.startswith(b'{"row"')


def rows(lines: Lines) -> list[int]:
    return [at for at, line in enumerate(lines) if is_row(line)]


def without(lines: Lines, *places: int) -> Lines:
    return [line for at, line in enumerate(lines) if at not in places]


def with_line(lines: Lines, at: int, line: bytes) -> Lines:
    return [*lines[:at], line, *lines[at:]]


def changed(line: bytes) -> bytes:
    return line.replace(b'"tenant_id":"t"', b'"tenant_id":"u"')


@pytest.mark.parametrize("sizes", [(), (1,), (3, 1, 8), (1001, 2)])
def test_what_nobody_touched(sizes: tuple[int, ...]):
    report = checked(an_export(*sizes, unsealed=2))
    assert report.is_verified, report.faults
    assert (report.seals, report.sealed, report.unsealed) == (len(sizes), sum(sizes), 2)
    assert report.keys_were_given


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(8))
def test_a_changed_row(place: int):
    lines = an_export(3, 5)
    at = rows(lines)[place]
    lines[at] = changed(lines[at])
    seal, number = (1, place) if place < 3 else (2, place - 3)
    assert found(lines) == {("row_changed", seal, f"registry_event u/{seal - 1}-{number}")}
    assert checked(lines).faults[0].line == at + 1


def test_every_row_changed():
    lines = [changed(line) if is_row(line) else line for line in an_export(4)]
    faults = checked(lines).faults
    assert [fault.code for fault in faults] == ["row_changed"] * 4


@pytest.mark.parametrize("place", range(8))
def test_a_removed_row(place: int):
    lines = an_export(3, 5)
    told = found(without(lines, rows(lines)[place]))
    assert told == {("row_removed", 1 if place < 3 else 2, None), ("count_differs", None, None)}


def test_a_removed_row_is_found_where_the_counts_were_made_to_agree():
    lines = an_export(3)
    lines[-1] = lines[-1].replace(b'"sealed":3', b'"sealed":2')
    assert found(without(lines, rows(lines)[1])) == {("row_removed", 1, None)}


def test_all_rows_of_a_seal_removed():
    lines = an_export(2, 3)
    told = [fault.code for fault in checked(without(lines, *rows(lines)[:2])).faults]
    assert told == ["row_removed", "row_removed", "count_differs"]


@pytest.mark.parametrize("place", range(6))
def test_an_added_row(place: int):
    lines = an_export(3, 3)
    at = rows(lines)[place]
    added = a_record("new", 0 if place < 3 else 10).canonical() + b"\n"
    told = found(with_line(lines, at, added))
    assert ("row_added", 1 if place < 3 else 2, "registry_event t/new") in told
    assert {code for code, *_ in told} == {"row_added", "count_differs"}


def test_a_row_that_stands_twice():
    lines = an_export(3)
    at = rows(lines)[1]
    assert ("row_repeated", 1, "registry_event t/0-1") in found(with_line(lines, at, lines[at]))


def test_rows_in_another_order():
    lines = an_export(4)
    first, *_, last = rows(lines)
    lines[first], lines[last] = lines[last], lines[first]
    told = found(lines)
    assert {code for code, *_ in told} == {"row_out_of_order"}


def test_a_row_in_another_batch():
    lines = an_export(2, 2)
    moved = lines[rows(lines)[0]]
    at = rows(lines)[3]
    told = found(without(with_line(lines, at, moved), rows(lines)[0]))
    assert {("row_removed", 1, None), ("row_added", 2, "registry_event t/0-0")} <= told
    assert ("row_misplaced", 2, "registry_event t/0-0") in told


def test_a_value_written_in_another_way():
    lines = an_export(2)
    at = rows(lines)[0]
    lines[at] = lines[at].replace(b'"table"', b' "table"')
    assert found(lines) == {("row_changed", 1, "registry_event t/0-0")}


@pytest.mark.parametrize(
    ("written_in", "code"), [(3, "row_added"), (10, None), (11, "row_added"), (10**18, "row_added")]
)
def test_a_row_that_is_not_sealed_yet(written_in: int, code: str | None):
    lines = an_export(2, unsealed=1)
    lines[-2] = lines[-2].replace(b'"written_in":"10"', b'"written_in":"%d"' % written_in)
    assert [fault.code for fault in checked(lines).faults] == ([code] if code else [])


def test_no_node_passes_for_a_row():
    # The level above the leaves, written as if it were rows: domains keep the roots apart.
    lines = an_export(4)
    leaves = [leaf_hash(lines[at][:-1]) for at in rows(lines)]
    assert checked(lines).is_verified
    assert leaf_hash(leaves[0] + leaves[1]) not in leaves
    lines[rows(lines)[0]] = b'{"row":{},"table":"%s"}\n' % (leaves[0] + leaves[1]).hex().encode()
    assert not checked(without(lines, *rows(lines)[1:2])).is_verified


# --- seals ----------------------------------------------------------------------------------------


def blocks(lines: Lines) -> tuple[bytes, list[Lines], bytes]:
    """Split an export into its header, the lines of each seal, and its end."""
    found: list[Lines] = []
    for line in lines[1:-1]:
        if line.startswith(b'{"seal"'):
            found.append([])
        found[-1].append(line)
    return lines[0], found, lines[-1]


@pytest.mark.parametrize(
    ("order", "codes"),
    [
        ([1, 2], {"seal_missing", "count_differs"}),
        ([0, 2], {"seal_missing", "count_differs"}),
        ([0, 1], {"count_differs"}),
        ([0, 0, 1, 2], {"seal_missing", "count_differs"}),
        ([0, 2, 1], {"seal_missing"}),
        ([1, 0, 2], {"seal_missing"}),
    ],
)
def test_seals_removed_repeated_and_reordered(order: list[int], codes: set[str]):
    header, seals, end = blocks(an_export(2, 2, 2))
    lines = [header, *(line for each in order for line in seals[each]), end]
    assert {fault.code for fault in checked(lines).faults} == codes


@pytest.mark.parametrize(
    ("member", "old", "new", "codes"),
    [
        ("sealed_at", "12:00", "13:00", {"signature_invalid", "chain_broken"}),
        ("to", '"to":20', '"to":19', {"signature_invalid", "chain_broken"}),
        ("number", '"number":2', '"number":9', {"signature_invalid", "seal_missing"}),
        ("leaves", '"leaves":2', '"leaves":3', {"leaf_list_changed"}),
        ("tenant", "-000000000007", "-000000000008", {"tenant_differs", "signature_invalid"}),
        ("previous", 'previous":"sha256:', 'previous":"sha256:0', None),
    ],
)
def test_a_statement_that_was_changed(member: str, old: str, new: str, codes: set[str] | None):
    lines = an_export(2, 2, 2)
    at = [at for at, line in enumerate(lines) if line.startswith(b'{"seal"')][1]
    sealed = json.loads(lines[at])
    assert old in sealed["seal"]["statement"], member
    sealed["seal"]["statement"] = sealed["seal"]["statement"].replace(old, new, 1)
    lines[at] = json.dumps(sealed).encode() + b"\n"
    if codes is None:
        with pytest.raises(UnreadableExport, match="statement"):
            checked(lines)
    else:
        assert codes <= {fault.code for fault in checked(lines).faults}


def test_a_list_of_hashes_that_was_changed():
    lines = an_export(3)
    hashes = json.loads(lines[2])
    for forged in (hashes["leaves"][::-1], hashes["leaves"][1:], []):
        lines[2] = json.dumps({"leaves": forged}).encode() + b"\n"
        assert found(lines) == {("leaf_list_changed", 1, None)}, "the rows are as they were"
    at = rows(lines)[0]
    lines[at] = changed(lines[at])
    assert "leaf_list_changed" in {fault.code for fault in checked(lines).faults}
    assert checked(lines).faults_count > 1, "and a row that is not, is found all the same"


def test_a_list_that_was_made_to_fit_a_changed_row():
    lines = an_export(2)
    at = rows(lines)[0]
    lines[at] = changed(lines[at])
    hashes = json.loads(lines[2])["leaves"]
    hashes[0] = leaf_hash(lines[at][:-1]).hex()
    lines[2] = json.dumps({"leaves": hashes}).encode() + b"\n"
    assert found(lines) == {("leaf_list_changed", 1, None), ("rows_differ", 1, None)}


def test_a_seal_of_another_key():
    mallory = KeyRing("k1", {"k1": b"m" * 32})
    lines = an_export(1)
    seal = a_seal(None, [a_record("0-0", 0)], keys=mallory)
    lines[1] = (
        json.dumps({"seal": {"statement": seal.text, "signature": seal.signature.hex()}}).encode()
        + b"\n"
    )
    assert found(lines) == {("signature_invalid", 1, None)}


def test_of_its_own_keys_the_one_that_a_seal_names_must_have_signed_it():
    lines = an_export(1)
    held_to_its_own = verify(read_lines(io.BytesIO(b"".join(lines))))
    assert held_to_its_own.is_verified
    lines[0] = lines[0].replace(b'"k1":', b'"k2":')
    (fault,) = verify(read_lines(io.BytesIO(b"".join(lines)))).faults
    assert (fault.code, fault.seal) == ("signature_invalid", 1)
    assert checked(lines).is_verified, "a key that was kept elsewhere needs no name"


def test_a_header_of_too_many_keys_is_not_read():
    lines = an_export(1)
    header = json.loads(lines[0])
    for more, is_read in ((KEYS_MAX, True), (KEYS_MAX + 1, False)):
        header["header"]["keys"] = {f"k{n}": TRUSTED[0].hex() for n in range(more)}
        lines[0] = json.dumps(header).encode() + b"\n"
        if is_read:
            assert checked(lines).is_verified
        else:
            with pytest.raises(UnreadableExport):
                checked(lines)


def test_the_head_that_was_kept():
    lines = an_export(1, 1, 1)
    heads = [
        digest_of(json.loads(line)["seal"]["statement"])
        for line in lines
        if line.startswith(b'{"seal"')
    ]
    for head in heads:
        assert checked(lines, head).is_verified, "a head that was kept earlier is in the chain"
    assert checked(lines).head == heads[-1]
    header, seals, end = blocks(lines)
    end = end.replace(b'"seals":3', b'"seals":2').replace(b'"sealed":3', b'"sealed":2')
    cut = [header, *seals[0], *seals[1], end]
    assert checked(cut).is_verified
    assert [fault.code for fault in checked(cut, heads[-1]).faults] == ["head_missing"]


def test_only_so_many_faults_are_told():
    lines = [changed(line) if is_row(line) else line for line in an_export(FAULTS_MAX + 50)]
    report = checked(lines)
    assert (len(report.faults), report.faults_count) == (FAULTS_MAX, FAULTS_MAX + 50)


def test_without_a_key_the_export_is_held_to_its_own():
    report = verify(read_lines(io.BytesIO(b"".join(an_export(2)))))
    assert report.is_verified
    assert not report.keys_were_given


# --- what is no export ----------------------------------------------------------------------------


def cut(count: int) -> Callable[[Lines], Lines]:
    return lambda lines: lines[:-count]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda lines: [], id="empty"),
        pytest.param(cut(1), id="no end"),
        pytest.param(cut(2), id="cut in a batch"),
        pytest.param(lambda lines: [*lines[:-1], lines[-1][:-1]], id="no newline"),
        pytest.param(lambda lines: [*lines[:-1], lines[-1][:20]], id="cut in a line"),
        pytest.param(lambda lines: lines[1:], id="no header"),
        pytest.param(lambda lines: [lines[0], *lines], id="two headers"),
        pytest.param(lambda lines: [*lines, lines[-1]], id="two ends"),
        pytest.param(lambda lines: [*lines, b"\n"], id="an empty line"),
        pytest.param(lambda lines: with_line(lines, 1, rows_of(lines)[0]), id="a row first"),
        pytest.param(lambda lines: with_line(lines, 1, lines[2]), id="hashes first"),
        pytest.param(lambda lines: with_line(lines, 4, lines[2]), id="hashes among rows"),
        pytest.param(lambda lines: with_line(lines, 1, b"{}\n"), id="nothing"),
        pytest.param(lambda lines: with_line(lines, 1, b'{"note":1}\n'), id="an unknown line"),
        pytest.param(lambda lines: with_line(lines, 1, b'{"end":null}\n'), id="null"),
        pytest.param(lambda lines: with_line(lines, 1, b"[1,2]\n"), id="no object"),
        pytest.param(lambda lines: with_line(lines, 1, b"<html>\n"), id="no JSON"),
        pytest.param(lambda lines: with_line(lines, 1, b"\xff\n"), id="no UTF-8"),
        pytest.param(
            lambda lines: with_line(lines, 3, b'{"row":{"a":"1","a":"2"},"table":"t"}\n'),
            id="a key twice",
        ),
        pytest.param(
            lambda lines: with_line(lines, 3, b'{"row":{"a":1},"table":"t"}\n'), id="a number"
        ),
        pytest.param(
            lambda lines: with_line(lines, 3, b'{"row":{},"table":"t","end":null}\n'),
            id="two things in one line",
        ),
        pytest.param(
            lambda lines: with_line(lines, 1, b'{"header":' + b"[" * 100_000 + b"\n"), id="deep"
        ),
        pytest.param(
            lambda lines: with_line(lines, 1, b'{"leaves":["%s"]}\n' % (b"g" * 64)), id="no hash"
        ),
        pytest.param(
            lambda lines: with_line(
                lines, 2, b'{"leaves":[%s]}\n' % b",".join([b'"' + b"0" * 64 + b'"'] * 1001)
            ),
            id="too many hashes a line",
        ),
        pytest.param(
            lambda lines: [
                each.replace(b'\\"leaves\\":3', b'\\"leaves\\":9000000') for each in lines
            ],
            id="too many records a seal",
        ),
        pytest.param(
            lambda lines: [each.replace(b"tallystick-audit-export-v1", b"v2") for each in lines],
            id="another format",
        ),
        pytest.param(
            lambda lines: [each.replace(b"tallystick-audit-seal-v1", b"v2") for each in lines],
            id="another format of seals",
        ),
    ],
)
def test_what_is_no_export(spoil: Callable[[Lines], Lines]):
    with pytest.raises(UnreadableExport, match=r"^line \d+: "):
        checked(spoil(an_export(3, unsealed=1)))


def rows_of(lines: Lines) -> Lines:
    return [lines[at] for at in rows(lines)]


class Endless(io.RawIOBase):
    """A line that never ends."""

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0
        return b"[" * size


def test_a_line_without_end_is_not_read_whole():
    with pytest.raises(UnreadableExport, match=str(LINE_BYTES_MAX)):
        next(read_lines(Endless()))  # pyright: ignore[reportArgumentType]


def test_memory_does_not_grow_with_the_file():
    def measured(seals: int) -> int:
        file = io.BytesIO(b"".join(an_export(*[50] * seals)))
        tracemalloc.start()
        assert verify(read_lines(file), trusted=TRUSTED).is_verified
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    measured(1)
    assert measured(40) < 2 * measured(4)

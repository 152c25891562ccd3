"""Entries and locks are values: a change makes another one."""

import pytest

from tallystick.errors import InvalidContract
from tallystick.lockfile.entry import EMPTY, Entry, Hashes, Level
from tests.unit.tallystick.lockfile.tools import ACCEPTED_AT, a_document, a_lock, an_entry


def test_entry_is_put_in_the_place_of_an_older_one_and_taken_away():
    lock = a_lock("shop.a", "shop.b")
    newer = an_entry(a_document(name="shop.a"), "2.0.0")

    assert lock.with_entry(newer).entries["shop.a"] is newer
    assert [*lock.with_entry(newer).entries] == ["shop.a", "shop.b"]
    assert [*lock.without("shop.a").entries] == ["shop.b"]
    assert [*lock.without("shop.c").entries] == ["shop.a", "shop.b"]
    assert lock.entries["shop.a"].version == "1.0.0"
    assert EMPTY.entries == {}


def test_hashes_are_the_contracts_unless_the_file_states_them():
    entry = an_entry()
    assert entry.hashes == Hashes.of(entry.contract)
    stated = Hashes("sha256:a", "sha256:b", "sha256:c")
    assert Entry(entry.document, ACCEPTED_AT, None, stated).hashes is stated


def test_contract_is_read_when_it_is_asked_for():
    entry = an_entry(a_document(effect_class="SAFE"))
    assert (entry.name, entry.version) == ("shop.tools.search", "1.0.0")
    with pytest.raises(InvalidContract):
        _ = entry.contract


def test_levels_are_what_programs_read():
    assert [each.value for each in Level] == [
        "unchanged",
        "text",
        "compatible",
        "review",
        "breaking",
        "new",
        "removed",
    ]

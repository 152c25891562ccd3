"""How a row becomes a leaf: whoever writes another verifier needs these bytes."""

import hashlib

from audit.record import Record

ROW = {
    "reason": 'a "quote", é and \u2028',
    "fence": "9007199254740993",
    "at": "2026-11-30 12:00:00+00",
}


def test_a_leaf_is_over_canonical_json():
    record = Record("event", ROW)
    text = (
        '{"row":{"at":"2026-11-30 12:00:00+00","fence":"9007199254740993",'
        '"reason":"a \\"quote\\", é and \u2028"},"table":"event"}'
    )
    assert record.canonical() == text.encode()
    assert record.leaf() == hashlib.sha256(b"\0" + text.encode()).digest()


def test_the_order_of_columns_is_nothing():
    assert Record("event", dict(reversed(ROW.items()))).leaf() == Record("event", ROW).leaf()


def test_a_row_of_another_table_is_another_leaf():
    assert Record("event", ROW).leaf() != Record("effect", ROW).leaf()


def test_a_row_is_named_by_its_key():
    assert Record("event", {"run_id": "r", "number": "7", "fence": "3"}).name == "event r/7/3"
    assert Record("event", {}).name == "event ?/?/?"
    assert Record("a_table_of_tomorrow", {"id": "1"}).name == "a_table_of_tomorrow"

"""The lockfile's text: one form for one content, and a plain refusal for everything else."""

import json
from dataclasses import replace

import pytest

from tallystick.errors import LockfileInvalid
from tallystick.lockfile.entry import EMPTY, Lock
from tallystick.lockfile.text import check_hashes, find_faults, parse_lock, write_lock
from tests.unit.tallystick.lockfile.tools import ACCEPTED_AT, a_document, a_lock, an_entry

WHOLE = write_lock(a_lock("shop.search", "shop.find"))


def refusal(text: str) -> str:
    with pytest.raises(LockfileInvalid) as caught:
        parse_lock(text, name="my.lock")
    return str(caught.value)


def altered(change) -> str:
    value = json.loads(WHOLE)
    change(value)
    return json.dumps(value)


def with_entry(**members) -> str:
    return altered(lambda value: value["tools"]["shop.find"].update(members))


def without(*path: str) -> str:
    def change(value):
        for key in path[:-1]:
            value = value[key]
        del value[path[-1]]

    return altered(change)


# --- one form -------------------------------------------------------------------------------------


def test_text_is_sorted_indented_json_with_the_hashes_of_each_contract():
    value = json.loads(WHOLE)
    entry = value["tools"]["shop.search"]
    contract = an_entry(a_document(name="shop.search")).contract

    assert json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n" == WHOLE
    assert [*value["tools"]] == ["shop.find", "shop.search"]
    assert value["tallystick_lock"] == 1
    assert entry == {
        "accepted_at": ACCEPTED_AT,
        "contract": a_document(name="shop.search", version="1.0.0"),
        "contract_digest": contract.contract_digest,
        "prompt_hash": contract.prompt_hash,
        "schema_hash": contract.schema_hash,
        "source": "shop.tools:search",
    }


def test_empty_lock_is_written_and_read():
    text = write_lock(EMPTY)
    assert text == '{\n  "tallystick_lock": 1,\n  "tools": {}\n}\n'
    assert parse_lock(text, name="my.lock").entries == {}


def test_what_was_read_is_written_byte_for_byte_the_same():
    assert write_lock(parse_lock(WHOLE, name="my.lock")) == WHOLE


def test_any_layout_and_order_is_read_and_written_in_the_one_form():
    value = json.loads(WHOLE)
    value["tools"] = dict(reversed(value["tools"].items()))
    for text in (json.dumps(value), json.dumps(value, indent=7).replace("\n", "\r\n")):
        assert write_lock(parse_lock(text, name="my.lock")) == WHOLE


def test_texts_of_every_kind_survive():
    text = 'Zürich 🛒 \u2028 \x7f " \\ \\ud800 <<<<<<< \n======='
    entry = replace(an_entry(a_document(description=text)), source=None)
    written = write_lock(Lock().with_entry(entry))
    read = parse_lock(written, name="my.lock").entries[entry.name]

    assert "Zürich 🛒" in written
    assert read.document["description"] == text
    assert read.source is None
    assert '"source"' not in written


def test_contract_may_nest_as_deep_here_as_anywhere():
    deep: object = "x"
    for _ in range(124):
        deep = [deep]
    entry = an_entry(a_document(examples=[{"arguments": {"query": deep}}]))
    assert entry.contract.document["examples"]
    text = write_lock(Lock().with_entry(entry))
    assert write_lock(parse_lock(text, name="my.lock")) == text


def test_rewriting_does_not_hide_that_an_entry_was_edited():
    edited = with_entry(prompt_hash="sha256:" + "0" * 64)
    lock = parse_lock(edited, name="my.lock").with_entry(an_entry())
    with pytest.raises(LockfileInvalid):
        check_hashes(parse_lock(write_lock(lock), name="my.lock"))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> branch", "||||||| base"])
def test_merge_marker_is_named_with_its_line(marker):
    lines = WHOLE.splitlines()
    lines.insert(4, marker)
    for end in ("\n", "\r\n"):
        assert refusal(end.join(lines)) == (
            "my.lock has a merge marker in line 5: finish the merge, and try again."
        )


def test_tool_that_a_merge_kept_twice_is_named():
    tool = json.dumps(json.loads(WHOLE)["tools"]["shop.find"])
    text = f'{{"tallystick_lock": 1, "tools": {{"shop.find": {tool}, "shop.find": {tool}}}}}'
    assert refusal(text) == (
        'my.lock has "shop.find" twice, as after a merge that kept both: remove one of them.'
    )


def test_newer_format_asks_for_a_newer_package():
    for newer in (
        '{"tallystick_lock": 2, "tools": []}',
        altered(lambda value: value.update(tallystick_lock=7, more=1)),
    ):
        assert "written by a newer Tallystick" in refusal(newer)
        assert "upgrade the package tallystick" in refusal(newer)


def test_lockfile_of_toolpact_is_recognised():
    assert "tallystick import my.lock" in refusal('{"_toolpact": "1", "functions": {}}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON (Expecting value, line 1 column 1)"),
        (WHOLE[:-40], "is not JSON ("),
        (WHOLE.replace('"tools": {', '"tools": {,', 1), "line 3 column 13"),
        ("\ufeff" + WHOLE, "is not JSON ("),
        ("[" * 100_000, "is nested more than 131 deep"),
        ('{"tools":' * 140 + "1" + "}" * 140, "is nested more than 131 deep"),
        ('{"tallystick_lock": NaN, "tools": {}}', "a number that is not JSON"),
        ('{"tallystick_lock": 1e999, "tools": {}}', "a number that is not JSON"),
        ('{"tallystick_lock": ' + "9" * 5000 + "}", "a number that is not JSON"),
        ('{"tallystick_lock": 1, "tools": {"\\ud800": 1}}', "a lone surrogate (U+D800)"),
        ('{"tallystick_lock": 1, "tools": {"\\u0000": 1}}', "the character NUL"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_place(text, words):
    assert words in refusal(text)
    assert refusal(text).endswith("restore the file from version control.")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[]", ""),
        ("1", ""),
        ('"tallystick_lock"', ""),
        ("{}", ""),
        ('{"tallystick_lock": 0, "tools": {}}', ""),
        ('{"tallystick_lock": true, "tools": {}}', ""),
        ('{"tallystick_lock": 1.0, "tools": {}}', ""),
        ('{"tallystick_lock": "1", "tools": {}}', ""),
        ('{"tallystick_lock": 1, "tools": {}, "more": 1}', ""),
        ('{"tallystick_lock": 1}', " at /tools"),
        ('{"tallystick_lock": 1, "tools": []}', " at /tools"),
        ('{"tallystick_lock": 1, "tools": {"a/b": 1}}', " at /tools/a~1b"),
        (with_entry(more=1), " at /tools/shop.find/more"),
        (with_entry(source=None), " at /tools/shop.find/source"),
        (with_entry(accepted_at=1), " at /tools/shop.find/accepted_at"),
        (with_entry(schema_hash=[]), " at /tools/shop.find/schema_hash"),
        (with_entry(contract=[]), " at /tools/shop.find/contract"),
        (without("tools", "shop.find", "contract"), " at /tools/shop.find/contract"),
        (without("tools", "shop.find", "accepted_at"), " at /tools/shop.find/accepted_at"),
        (without("tools", "shop.find", "prompt_hash"), " at /tools/shop.find/prompt_hash"),
        (
            without("tools", "shop.find", "contract", "version"),
            " at /tools/shop.find/contract/version",
        ),
        (without("tools", "shop.find", "contract", "name"), " at /tools/shop.find/contract/name"),
    ],
)
def test_another_shape_is_refused_with_the_place(text, place):
    assert refusal(text) == (
        f"my.lock does not have the shape of a lockfile{place}: restore the file from version"
        " control."
    )


# --- what only a check looks at -------------------------------------------------------------------


def faults(text: str) -> dict[str, str]:
    return find_faults(parse_lock(text, name="my.lock"))


def test_entries_in_order_have_no_fault():
    assert faults(WHOLE) == {}
    check_hashes(parse_lock(WHOLE, name="my.lock"))


@pytest.mark.parametrize("each", ["contract_digest", "prompt_hash", "schema_hash"])
def test_hash_that_does_not_fit_is_refused_and_can_be_accepted(each):
    text = with_entry(**{each: "sha256:" + "0" * 64})
    with pytest.raises(LockfileInvalid) as caught:
        check_hashes(parse_lock(text, name="my.lock"), name="my.lock")
    assert str(caught.value) == (
        f"my.lock: the {each} of shop.find is not that of its contract, as after a merge or an"
        " edit by hand: run `tallystick accept shop.find`."
    )
    assert caught.value.facts == {"tool": "shop.find"}


def test_entry_under_another_name_can_be_accepted():
    tools = json.loads(WHOLE)["tools"]
    text = altered(lambda value: value["tools"].update({"shop.find": tools["shop.search"]}))
    assert faults(text) == {
        "shop.find": (
            "the entry shop.find holds the contract of shop.search, as after a merge or an edit by"
            " hand: run `tallystick accept shop.find`"
        )
    }


def test_contract_that_is_none_has_to_be_restored():
    text = altered(
        lambda value: value["tools"]["shop.find"]["contract"].update(effect_class="SAFE")
    )
    (fault,) = faults(text).values()
    assert fault.startswith("the contract of shop.find is not valid (")
    assert fault.endswith("restore the file from version control")

"""Which names a reader would call the same property under another name, and which not."""

import pytest

from tallystick.compatibility.changes.renames import CANDIDATES_MAX, Candidate, renamed, words

TEXT = frozenset({"string"})
NUMBER = frozenset({"number"})


def candidate(name, types=TEXT, structure=None, description=None, *, is_required=False):
    return Candidate(name, types, structure or types, description, is_required)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q", "query"),
        ("per_page", "perPage"),
        ("pullNumber", "pull_number"),
        ("threadID", "thread_id"),
        ("org", "organization"),
        ("msg", "message"),
        ("number", "issue_number"),
        ("pr_number", "pull_request_number"),
        ("since", "since_date"),
        ("reciever", "receiver"),
        ("customer_id", "account_id"),
    ],
)
def test_a_similar_name_in_the_same_place_is_a_rename(old, new):
    assert renamed([candidate(old)], [candidate(new)]) == {old: new}
    assert renamed([candidate(new)], [candidate(old)]) == {new: old}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("branch", "ref"),
        ("sort", "orderBy"),
        ("id", "include"),
        ("amount_dollars", "amount_cents"),
        ("timeout_ms", "timeout_seconds"),
        ("timeout", "timeout_ms"),
        ("page", "after"),
    ],
)
def test_another_name_or_another_unit_is_no_rename(old, new):
    assert renamed([candidate(old)], [candidate(new)]) == {}


def test_a_name_in_another_spelling_is_a_rename_whatever_the_type():
    old, new = candidate("projectNumber"), candidate("project_number", NUMBER)
    assert renamed([old], [new]) == {"projectNumber": "project_number"}


def test_a_similar_name_of_another_type_is_no_rename():
    assert renamed([candidate("fields")], [candidate("updated_field", NUMBER)]) == {}


def test_the_same_text_makes_a_rename_of_names_that_are_not_alike():
    text = "Who is billed"
    old, new = candidate("payer", description=text), candidate("customer", description=text)
    assert renamed([old], [new]) == {"payer": "customer"}


def test_what_is_ambiguous_is_no_rename():
    new = [candidate("first_name"), candidate("last_name")]
    assert renamed([candidate("name")], new) == {}
    assert renamed(new, [candidate("name")]) == {}


def test_the_best_fit_is_taken_first():
    old = [candidate("issueNumber"), candidate("number")]
    new = [candidate("issue_number"), candidate("pr_number")]
    assert renamed(old, new) == {"issueNumber": "issue_number", "number": "pr_number"}


def test_a_shared_last_word_is_not_enough_if_one_is_required_and_the_other_not():
    old, new = candidate("customer_id", is_required=True), candidate("account_id")
    assert renamed([old], [new]) == {}


def test_beyond_the_bound_only_another_spelling_counts():
    count = CANDIDATES_MAX + 1
    old = [candidate(f"fieldName{n}") for n in range(count)] + [candidate("q")]
    new = [candidate(f"field_name_{n}") for n in range(count)] + [candidate("query")]
    assert renamed(old, new) == {f"fieldName{n}": f"field_name_{n}" for n in range(count)}


def test_words():
    assert words("pullRequestURL2") == ("pull", "request", "url", "2")
    assert words("---") == ("---",)

"""The envelope: one shape, within its limit, and what is cut to keep it there."""

import json
from typing import Any

import pytest

from tallystick import errors
from tallystick.answer import Answer, ErrorAnswer, refused
from tallystick.cutting import MARK, cut, cut_text


def test_a_result_and_an_error():
    assert Answer({"total": 150}).text() == '{"ok":true,"result":{"total":150}}'
    error = Answer(None, ErrorAnswer("not_found", "No order.", retryable=False, pointer="/id"))
    assert json.loads(error.text()) == {
        "ok": False,
        "error": {
            "code": "not_found",
            "message": "No order.",
            "retryable": False,
            "pointer": "/id",
        },
    }
    assert (Answer(1).ok, error.ok) == (True, False)


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (errors.ToolContractNotFound("x"), "unknown_tool", False),
        (errors.NotFound("x"), "not_found", False),
        (errors.PolicyBlocked("x"), "policy_blocked", False),
        (errors.ServiceTimeout("x"), "service_timeout", True),
        (errors.ServiceTimeout("x", facts={"retryable": False}), "service_timeout", False),
        (errors.ToolFailed("x", facts={"code": "declined"}), "declined", False),
        (errors.ToolFailed("x", facts={"code": "busy", "retryable": True}), "busy", True),
        # A program can wait for these. A model would only ask again at once.
        (errors.ContractMigrating("x", facts={"retryable": True}), "contract_migrating", False),
        (errors.ContractSuspended("x"), "contract_suspended", False),
        (errors.RateLimited("x"), "rate_limited", False),
        (errors.RegistryUnavailable("x"), "registry_unavailable", False),
    ],
)
def test_every_refusal_has_an_answer(error: Any, code: str, retryable: bool):
    answer = refused(error)
    assert answer.error is not None
    assert (answer.error.code, answer.error.retryable) == (code, retryable)
    assert answer.error.message == "x."


def test_what_waits_for_a_person_is_not_called_again_until_then():
    error = errors.NeedsHuman("It is large")
    answer = refused(error).error
    assert answer is not None
    assert (answer.code, answer.retryable, error.retryable) == ("needs_human", False, True)
    assert answer.message == "It is large. Do not call it again until a person has approved it."


@pytest.mark.parametrize(
    "kind",
    [*errors.Refusal.__subclasses__(), *errors.Outage.__subclasses__()],
    ids=lambda kind: kind.__name__,
)
def test_no_answer_is_longer_than_the_least_limit(kind: Any):
    text = refused(kind("x" * 500, pointer="/a" * 100), limit=64).text()
    assert len(text) <= 64
    assert json.loads(text)["ok"] is False


def told(value: Any, limit: int) -> dict[str, Any]:
    text = Answer(value).text(limit)
    assert len(text) <= limit
    return json.loads(text)


def test_long_texts_are_cut_before_items():
    answer = told([{"id": number, "body": "x" * 1000} for number in range(10)], 4000)
    assert [each["id"] for each in answer["result"]] == list(range(10))
    assert answer["truncated"].keys() == {"characters"}
    assert all(each["body"].endswith(MARK) for each in answer["result"])


def test_a_short_text_stays_whole_beside_a_long_one():
    answer = told({"status": "shipped", "log": "x" * 9000}, 1000)
    assert answer["result"]["status"] == "shipped"
    assert answer["truncated"] == {"characters": 9000 - len(answer["result"]["log"]) + 1}


def test_a_list_keeps_its_first_items_whole():
    answer = told([{"id": number} for number in range(1000)], 500)
    kept = answer["result"]
    assert kept == [{"id": number} for number in range(len(kept))]
    assert answer["truncated"] == {"items": 1000 - len(kept)}
    assert len(Answer([{"id": number} for number in range(1000)]).text(500)) > 400


def test_small_members_stay_beside_a_large_one():
    answer = told({"orders": [{"id": n} for n in range(1000)], "total": 1000, "page": 1}, 300)
    assert (answer["result"]["total"], answer["result"]["page"]) == (1000, 1)
    assert answer["truncated"].keys() == {"items"}


def test_members_go_where_their_names_have_no_room():
    answer = told({f"{'name' * 20}{number}": number for number in range(100)}, 400)
    assert answer["truncated"] == {"members": 100 - len(answer["result"])}


def test_escapes_are_counted_as_they_are_written():
    for value in ("\n" * 5000, '"' * 5000, "\u0001" * 5000, "ä€😀" * 2000):
        assert told(value, 200)["truncated"]["characters"] > 4000


@pytest.mark.parametrize("value", ["x" * 500, ["x"] * 500, {str(n): n for n in range(500)}])
def test_the_least_limit_still_tells_what_is_missing(value: Any):
    assert sum(told(value, 64)["truncated"].values()) > 400


def test_a_limit_below_the_least_is_refused():
    with pytest.raises(ValueError, match="64"):
        Answer(1).text(63)


def test_the_limit_of_a_contract_is_the_answers_own():
    items: list[Any] = ["x"] * 500
    answer = Answer(items, None, 100)
    assert len(answer.text()) <= 100
    assert answer.text() == str(answer) == answer.text(100)


def test_nothing_fits_nowhere():
    assert cut(123456, 3) is None
    assert cut_text("abcdef", 5).value == f"ab{MARK}"

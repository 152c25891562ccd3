"""The demo can fail: its checks, its comparison of the books, and its story."""

from typing import Any, cast

import pytest
from rich.console import Console

from cli.demo.books import compare
from cli.demo.checks import Checks
from cli.demo.performance import conduct
from cli.demo.stage import Stage
from cli.demo.story import Story
from cli.demo.tools import documents
from tallystick.errors import EffectConflict, RegistryUnavailable, ToolSchemaDrift
from tallystick.tool_contract import Contract

# --- checks and chapters --------------------------------------------------------------------------


def a_stage() -> Stage:
    """A stage with a story alone, which is told to nobody."""
    nothing = cast("Any", None)
    return Stage(Story(Console(quiet=True), Checks()), nothing, nothing, nothing, nothing)


async def refuse(refusal: Exception | None) -> None:
    if refusal is not None:
        raise refusal


def test_a_demo_whose_checks_hold_exits_with_zero():
    checks = Checks()
    checks.add("one", ok=True, detail="done")
    assert checks.exit_code == 0


@pytest.mark.parametrize("held", [[False], [True, False], [False, True], []])
def test_a_demo_with_a_failed_check_or_none_at_all_does_not(held: list[bool]):
    checks = Checks()
    for ok in held:
        checks.add("one", ok=ok, detail="done")
    assert checks.exit_code == 1


async def test_a_chapter_that_breaks_off_is_a_failed_check_and_ends_the_story():
    stage, told = a_stage(), list[str]()

    async def breaks(_: Stage) -> None:
        raise RegistryUnavailable("The server has ended.")

    async def goes_on(_: Stage) -> None:
        told.append("the next chapter")

    await conduct(stage, [breaks, goes_on])
    assert stage.story.checks.exit_code == 1
    assert "The server has ended." in stage.story.checks.done[-1].detail
    assert told == []


@pytest.mark.parametrize(
    ("answer", "holds"),
    [(ToolSchemaDrift("no"), True), (EffectConflict("no"), False), (None, False)],
)
async def test_only_the_expected_refusal_holds(answer: Exception | None, holds: bool):
    stage = a_stage()
    await stage.refused("it is refused", "tool_schema_drift", refuse(answer))
    assert stage.story.checks.ok is holds


def test_a_failed_check_is_marked_in_the_story(capsys: pytest.CaptureFixture[str]):
    story = Story(Console(width=80), Checks())
    story.check("the books agree", ok=False, answer="booked [bold]twice[/bold]")
    shown = capsys.readouterr().out
    assert "✗ the books agree" in shown
    assert "booked [bold]twice[/bold]" in shown, "an answer is never read as markup"


# --- the books ------------------------------------------------------------------------------------

ARGUMENTS = {"customer_id": "C-1", "amount_cents": 5}


def an_effect(**changes: Any) -> dict[str, Any]:
    effect = {
        "effect_id": "e-1",
        "run": "run-1",
        "effect": "effect:invoice",
        "effect_class": "IDEMPOTENT",
        "state": "SUCCEEDED",
        "arguments": ARGUMENTS,
        "outcome": {"provider_reference": "invoice-0001"},
    }
    return effect | changes


def a_booking(**changes: Any) -> dict[str, Any]:
    return {"effect_id": "e-1", "reference": "invoice-0001", "body": ARGUMENTS} | changes


def test_books_that_agree():
    (line,) = compare([a_booking()], [an_effect()])
    assert line.ok
    assert line.call == "run-1 / invoice"


@pytest.mark.parametrize(
    ("bookings", "effects"),
    [
        pytest.param([], [an_effect()], id="not booked"),
        pytest.param([a_booking(), a_booking(reference="invoice-0002")], [an_effect()], id="twice"),
        pytest.param([a_booking()], [], id="not in the ledger"),
        pytest.param([a_booking()], [an_effect(state="FAILED")], id="failed, and booked"),
        pytest.param([a_booking()], [an_effect(state="UNKNOWN", outcome=None)], id="open"),
        pytest.param([a_booking(body={"amount_cents": 6})], [an_effect()], id="another amount"),
        pytest.param([a_booking(reference="invoice-0009")], [an_effect()], id="another booking"),
        pytest.param([a_booking(effect_id=None)], [], id="booked without an effect"),
    ],
)
def test_books_that_do_not_agree(bookings: list[dict[str, Any]], effects: list[dict[str, Any]]):
    lines = compare(bookings, effects)
    assert lines
    assert not all(line.ok for line in lines)


def test_what_only_reads_is_not_booked():
    assert compare([], [an_effect(effect_class="PURE")]) == []


# --- the contracts --------------------------------------------------------------------------------


def test_the_contracts_are_valid_and_ask_the_provider_for_evidence():
    contracts = [Contract.parse(each) for each in documents("http://127.0.0.1:8000")]
    assert {contract.effect_class.value for contract in contracts} == {
        "PURE",
        "IDEMPOTENT",
        "REPLAYABLE",
        "UNKNOWN",
        "NON_RETRYABLE",
    }
    told = [contract.evidence for contract in contracts if contract.evidence]
    asked = [evidence.http.url for evidence in told if evidence.http]
    assert asked
    assert all(url.startswith("http://127.0.0.1:8000/") for url in asked)

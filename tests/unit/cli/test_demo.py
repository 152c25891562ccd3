"""The demo can fail: its checks, its comparison of the books, its story, and its provider."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from rich.console import Console

from cli.demo.books import compare
from cli.demo.checks import Checks
from cli.demo.performance import conduct
from cli.demo.provider import Books, Provider
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
    asked = [contract.evidence.http.url for contract in contracts if contract.evidence]
    assert asked
    assert all(url.startswith("http://127.0.0.1:8000/") for url in asked)


# --- the provider ---------------------------------------------------------------------------------


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return tmp_path / "books.sqlite"


@pytest.fixture
def provider(books: Path) -> Iterator[httpx.Client]:
    with Provider(0, Books(books)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with httpx.Client(base_url=server.url, trust_env=False) as http:
            yield http
        server.shutdown()
        thread.join()


def post(
    provider: httpx.Client, kind: str, body: Any = ARGUMENTS, **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return provider.post(f"/{kind}", json=body, headers=named)


def booked(provider: httpx.Client) -> list[Any]:
    return provider.get("/books").json()["bookings"]


def test_the_same_key_with_the_same_body_is_the_same_booking(provider: httpx.Client):
    first = post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1")
    again = post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert len(booked(provider)) == 1
    assert len(provider.get("/books").json()["requests"]) == 2


def test_the_same_key_with_another_body_is_refused(provider: httpx.Client):
    post(provider, "invoices", Idempotency_Key="k-1")
    refused = post(provider, "invoices", {"amount_cents": 6}, Idempotency_Key="k-1")
    assert refused.status_code == 409
    assert [booking["body"] for booking in booked(provider)] == [ARGUMENTS]


def test_what_honours_keys_asks_for_one(provider: httpx.Client):
    assert post(provider, "invoices").status_code == 400
    assert booked(provider) == []


def test_what_honours_no_keys_books_every_request(provider: httpx.Client):
    for _ in range(2):
        post(provider, "transfers", Idempotency_Key="k-1", Effect_Id="e-1")
    assert len(booked(provider)) == 2


def test_a_booking_is_found_by_effect_and_by_key(provider: httpx.Client):
    made = post(provider, "invoices", Idempotency_Key="k/1", Effect_Id="e.1").json()
    assert provider.get("/effects/e.1").json() == made
    assert provider.get("/keys/k%2F1").json() == made
    assert made["status"] == "booked"
    assert made["body"] == ARGUMENTS


def test_only_a_look_up_says_not_found(provider: httpx.Client):
    assert provider.get("/effects/e-2").status_code == 404
    assert provider.get("/keys/k-2").status_code == 404
    assert provider.get("/efects/e-2").status_code == 400, "a wrong address is no evidence"
    assert post(provider, "gifts").status_code == 400


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"'])
def test_what_is_no_object_is_not_booked(provider: httpx.Client, content: bytes):
    assert provider.post("/transfers", content=content).status_code == 400
    assert booked(provider) == []


def test_the_books_outlive_the_provider(provider: httpx.Client, books: Path):
    made = post(provider, "transfers", Effect_Id="e-1").json()
    assert Books(books).by_effect("e-1") == json.loads(json.dumps(made))

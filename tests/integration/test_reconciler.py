"""The reconciler against a provider: what each answer leads to, and what it never does."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from ledger.judgement import Judgement
from ledger.settlement import CHECKS_MAX
from reconciler.sources import Asker, Source
from server.secret_file import read_secrets
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract
from tests.api import Api, moment
from tests.builders import ARGUMENTS, a_contract, a_contract_of, a_question, http_evidence
from tests.fixtures import Owner, Sweep, asking, sweeper_of
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

AMOUNT = ARGUMENTS["amount_cents"]
ASKER = Asker("default", is_publisher=True)


class Canned:
    """A server on loopback that gives every question the same bytes, and keeps the questions."""

    def __init__(self, *parts: bytes, pause: float = 0) -> None:
        self.parts = parts
        self.pause = pause
        self.port = 0
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            for part in self.parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(self.pause)
        except ConnectionError:
            pass  # The other side has had enough.
        finally:
            writer.close()


@asynccontextmanager
async def serving(canned: Canned) -> AsyncGenerator[Canned]:
    server = await asyncio.start_server(canned.serve, "127.0.0.1", 0)
    async with server:
        canned.port = server.sockets[0].getsockname()[1]
        yield canned


def response(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} Any", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


class Held:
    """A source that has its answer and keeps it back until it is let go."""

    def __init__(self, source: Source) -> None:
        self._inner = source
        self.has_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        judgement = await self._inner.ask(contract, question, asker)
        self.has_asked.set()
        await self.may_answer.wait()
        return judgement


async def in_doubt(api: Api, document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return an effect whose worker does not know how it ended."""
    effect = await api.dispatched(await api.publish(document), **changes)
    assert (await api.report(effect, "unknown")).body["state"] in ("UNKNOWN", "RETRYABLE")
    return effect


def invoice(effect: dict[str, Any], **changes: Any) -> bytes:
    facts = {"id": "inv_1", "effect_id": effect["effect_id"], "status": "applied"}
    return json.dumps(facts | {"amount_cents": AMOUNT} | changes).encode()


@pytest.mark.parametrize(
    ("facts", "state", "answer", "reference"),
    [
        ({"amount_cents": AMOUNT}, "SUCCEEDED", "applied", "inv_1"),
        ({"amount_cents": 1250.0}, "SUCCEEDED", "applied", "inv_1"),
        ({"status": "rejected"}, "FAILED", "rejected", "inv_1"),
        ({"status": "pending"}, "UNKNOWN", "in_progress", "inv_1"),
        ({"status": "haunted"}, "UNKNOWN", "unavailable", "inv_1"),
        ({"status": None}, "UNKNOWN", "unavailable", "inv_1"),
        ({"amount_cents": 1251}, "QUARANTINED", "contradicts", "inv_1"),
        ({"amount_cents": "1250"}, "QUARANTINED", "contradicts", "inv_1"),
        ({}, "QUARANTINED", "contradicts", "inv_1"),
        # The answer is about another effect, or does not say about which.
        ({"effect_id": "other", "amount_cents": AMOUNT}, "UNKNOWN", "unavailable", None),
        ({"effect_id": None, "status": "rejected"}, "UNKNOWN", "unavailable", None),
        ({"amount_cents": AMOUNT, "id": {"a": 1}}, "SUCCEEDED", "applied", None),
        ({"amount_cents": AMOUNT, "id": 7}, "SUCCEEDED", "applied", "7"),
    ],
)
async def test_what_the_providers_answer_leads_to(
    api: Api,
    provider: Provider,
    sweep: Sweep,
    facts: dict[str, Any],
    state: str,
    answer: str,
    reference: str | None,
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    provider.book(effect["effect_id"])
    provider.books[effect["effect_id"]].update(facts)
    assert await sweep.once() == 1
    shown = await api.show(effect)
    assert shown["state"] == state
    assert [one["to_state"] for one in shown["events"]][-3:] == ["UNKNOWN", "RECONCILING", state]
    (evidence,) = shown["evidence"]
    assert (evidence["source"], evidence["answer"]) == ("http", answer)
    assert evidence["provider_reference"] == reference
    assert str(facts.get("amount_cents", "none")) not in evidence["detail"]
    if state in ("SUCCEEDED", "FAILED"):
        assert shown["outcome"]["provider_reference"] == reference
        assert shown["outcome"]["decided_by"] == "reconciler:test"
    assert provider.asked == [f"/effects/{effect['effect_id']}"]


@pytest.mark.parametrize(
    ("status", "raw", "detail"),
    [
        (200, b"", "not JSON"),
        (200, b"<html>", "not JSON"),
        (200, b'{"status":"applied","status":"applied"}', "not JSON"),
        (200, b'"applied"', "something else"),
        (200, b"[]", "something else"),
        (200, b"\xff", "not JSON"),
        (500, b'{"status":"applied"}', "status 500"),
        (503, b"", "status 503"),
        (403, b"", "status 403"),
        (204, b"", "not JSON"),
        (200, b'"' + b"a" * (256 * 1024) + b'"', "too large"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_what_says_nothing_is_asked_again(
    api: Api, provider: Provider, sweep: Sweep, status: int, raw: bytes, detail: str
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    provider.status, provider.raw = status, raw
    assert await sweep.once() == 1
    shown = await api.show(effect)
    assert shown["state"] == "UNKNOWN"
    assert [one["answer"] for one in shown["evidence"]] == ["unavailable"]
    assert detail in shown["evidence"][0]["detail"]
    assert detail in shown["reason"]
    assert await sweep.once() == 0, "not before the back-off is over"


async def test_the_wait_between_questions_doubles(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    provider.book(effect["effect_id"], status="pending")
    waits: list[float] = []
    for _ in range(4):
        await owner.run_out(effect)
        await sweep.once()
        shown = await api.show(effect)
        waits.append((moment(shown["due_at"]) - moment(shown["events"][-1]["at"])).total_seconds())
    assert waits == [0.5, 1, 2, 4], "half of it is jitter, and here there is none"
    assert len(provider.asked) == 4


@pytest.mark.parametrize(
    ("effect_class", "more", "states"),
    [
        ("IDEMPOTENT", {}, ["QUARANTINED"]),
        ("NON_RETRYABLE", {}, ["QUARANTINED"]),
        ("UNKNOWN", {}, ["QUARANTINED"]),
        ("REPLAYABLE", {}, ["QUARANTINED"]),
        ("REPLAYABLE", {"max_duplicates": 1}, ["RETRYABLE", "QUARANTINED"]),
        ("REPLAYABLE", {"max_duplicates": 9, "attempts_max": 2}, ["RETRYABLE", "QUARANTINED"]),
    ],
)
async def test_a_provider_that_never_tells_is_given_up(
    api: Api,
    owner: Owner,
    provider: Provider,
    sweep: Sweep,
    effect_class: str,
    more: dict[str, Any],
    states: list[str],
):
    evidence = http_evidence(provider.port)
    effect = await in_doubt(api, a_contract_of(effect_class, evidence=evidence, **more))
    provider.status = 500
    for state in states:
        await owner.have_asked(effect, CHECKS_MAX - 1)
        await owner.run_out(effect)
        await sweep.once()
        assert await api.state(effect) == state
        if state == "RETRYABLE":
            again = (await api.dispatch(effect)).body
            await api.report(again, "unknown")


@pytest.mark.parametrize(
    ("effect_class", "more", "state"),
    [
        ("IDEMPOTENT", {}, "QUARANTINED"),
        ("REPLAYABLE", {}, "QUARANTINED"),
        ("REPLAYABLE", {"max_duplicates": 1}, "RETRYABLE"),
        ("UNKNOWN", {}, "QUARANTINED"),
        ("NON_RETRYABLE", {}, "QUARANTINED"),
    ],
)
async def test_without_a_source_there_is_nobody_to_ask(
    api: Api, provider: Provider, sweep: Sweep, effect_class: str, more: dict[str, Any], state: str
):
    effect = await in_doubt(api, a_contract_of(effect_class, **more))
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], shown["evidence"], provider.asked) == (state, [], [])


@pytest.mark.parametrize(
    ("effect_class", "more", "state"),
    [
        ("IDEMPOTENT", {}, "RETRYABLE"),
        ("REPLAYABLE", {}, "RETRYABLE"),
        ("UNKNOWN", {}, "QUARANTINED"),
        ("NON_RETRYABLE", {}, "QUARANTINED"),
    ],
)
async def test_absent_is_believed_after_the_settle_window_alone(
    api: Api,
    owner: Owner,
    provider: Provider,
    sweep: Sweep,
    effect_class: str,
    more: dict[str, Any],
    state: str,
):
    evidence = http_evidence(provider.port, lag_seconds=20)
    document = a_contract_of(effect_class, evidence=evidence, settle_seconds=40, **more)
    effect = await in_doubt(api, document)
    await sweep.once()
    early = await api.show(effect)
    assert early["state"] == "UNKNOWN"
    unknown_since = moment(early["events"][2]["at"])
    assert moment(early["due_at"]) == unknown_since + timedelta(seconds=60)
    assert await sweep.once() == 0
    await owner.pass_time(effect, 60)
    await sweep.once()
    first = await api.show(effect)
    assert (first["state"], first["reason"]) == ("UNKNOWN", "absent, to be asked once more")
    observed_at = moment(first["evidence"][-1]["observed_at"])
    assert moment(first["due_at"]) == observed_at + timedelta(seconds=20), "as long as it may lag"
    await owner.pass_time(effect, 20)
    await sweep.once()
    shown = await api.show(effect)
    assert shown["state"] == state
    assert [one["answer"] for one in shown["evidence"]] == ["absent"] * 3


@pytest.mark.parametrize("between", ["outage", "message", "pending"])
async def test_anything_else_between_two_answers_absent_starts_anew(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep, between: str
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    await sweep.once()
    await owner.pass_time(effect, 5)
    if between == "message":
        assert (await api.tell(effect, "in_progress")).status == 201
    else:
        provider.status = 503 if between == "outage" else None
        if between == "pending":
            provider.book(effect["effect_id"], status="pending")
        await sweep.once()
        provider.status = None
        provider.books.clear()
        await owner.pass_time(effect, 5)
    await sweep.once()
    assert (await api.show(effect))["reason"] == "absent, to be asked once more"
    await owner.pass_time(effect, 1)
    await sweep.once()
    assert await api.state(effect) == "RETRYABLE"


async def test_what_shows_up_before_the_window_is_over_has_happened(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    document = a_contract(evidence=http_evidence(provider.port), settle_seconds=40)
    effect = await in_doubt(api, document)
    await sweep.once()
    provider.book(effect["effect_id"], amount_cents=AMOUNT)
    await owner.run_out(effect)
    await sweep.once()
    assert await api.state(effect) == "SUCCEEDED"


async def test_a_source_that_lags_never_says_absent(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port, consistency="eventual")
    effect = await in_doubt(api, a_contract(evidence=evidence, settle_seconds=0))
    for _ in range(3):
        await owner.run_out(effect)
        await sweep.once()
        assert await api.state(effect) == "UNKNOWN"
    provider.book(effect["effect_id"], amount_cents=AMOUNT)
    await owner.run_out(effect)
    await sweep.once()
    assert await api.state(effect) == "SUCCEEDED"


async def test_a_redirect_is_not_followed(api: Api, provider: Provider):
    async with serving(Canned()) as canned:
        effect = await in_doubt(api, a_contract(evidence=http_evidence(canned.port)))
        provider.book(effect["effect_id"], amount_cents=AMOUNT)
        there = f"http://127.0.0.1:{provider.port}/effects/{effect['effect_id']}"
        canned.parts = (response(302, invoice(effect), f"Location: {there}"),)
        async with asking(f"127.0.0.1:{port}" for port in (canned.port, provider.port)) as source:
            await sweeper_of(api, source).once()
    shown = await api.show(effect)
    assert (shown["state"], shown["evidence"][0]["detail"]) == ("UNKNOWN", "status 302")
    assert (len(canned.heads), provider.asked) == (1, [])


async def test_only_the_hosts_that_an_operator_allows_are_asked(api: Api, provider: Provider):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    port = provider.port
    for allowed in ([], ["127.0.0.1"], [f"127.0.0.1:{port}0"], [f"localhost:{port}"], ["*"]):
        async with asking(allowed) as source:
            question = a_question(effect["effect_id"], "")
            document = a_contract(evidence=http_evidence(port))
            judgement = await source.ask(Contract.parse(document), question, ASKER)
            assert judgement is not None
            assert (judgement.answer, provider.asked) == ("unavailable", [])
            assert "evidence hosts" in judgement.detail
    async with asking([]) as source:
        await sweeper_of(api, source).once()
    assert (await api.state(effect), provider.asked) == ("UNKNOWN", [])


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://[/", "http://a b/", "http://"])
async def test_an_address_that_is_none_is_not_asked(url: str):
    http = http_evidence(1)["http"] | {"url": f"{url.replace(' ', '')}{{effect_id}}"}
    contract = Contract.parse(a_contract(evidence=http_evidence(1, http=http)))
    async with asking(["127.0.0.1:80", ":80", "[:80"]) as source:
        judgement = await source.ask(contract, a_question("run.1"), ASKER)
    assert judgement is not None
    assert judgement.answer == "unavailable"


async def test_a_provider_that_is_down_is_asked_again(api: Api):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    effect = await in_doubt(api, a_contract(evidence=http_evidence(port)))
    async with asking([f"127.0.0.1:{port}"]) as source:
        await sweeper_of(api, source).once()
    shown = await api.show(effect)
    assert shown["state"] == "UNKNOWN"
    assert shown["evidence"][0]["detail"] == "not reached: ConnectError"


@pytest.mark.parametrize(
    "canned",
    [
        Canned(b""),
        Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        Canned(b"220 mail.example ESMTP\r\n\r\n"),
        # Byte by byte, and so never silent for long.
        Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", *[b" "] * 500, pause=0.02),
    ],
    ids=["hangs up", "half an answer", "no HTTP", "drips"],
)
async def test_an_answer_that_does_not_come_is_not_waited_for(api: Api, canned: Canned):
    async with serving(canned):
        evidence = http_evidence(canned.port)
        evidence["http"]["timeout_seconds"] = 0.2
        effect = await in_doubt(api, a_contract(evidence=evidence))
        async with asking([f"127.0.0.1:{canned.port}"]) as source:
            assert await sweeper_of(api, source).once() == 1
    shown = await api.show(effect)
    assert shown["state"] == "UNKNOWN"
    assert shown["evidence"][0]["detail"].startswith("not reached: ")


async def test_a_secret_is_named_in_the_contract_and_sent_from_the_environment(
    api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    secret = "secret-canary-77"
    monkeypatch.setenv("TALLYSTICK_SECRET_BILLING_API_READ", secret)
    async with serving(Canned()) as canned:
        evidence = http_evidence(canned.port)
        evidence["http"] |= {"secret": "billing-api.read", "headers": {"X-Account": "7"}}
        effect = await in_doubt(api, a_contract(evidence=evidence))
        canned.parts = (response(200, invoice(effect)),)
        async with asking([f"127.0.0.1:{canned.port}"], read_secrets(None)) as source:
            await sweeper_of(api, source).once()
    assert await api.state(effect) == "SUCCEEDED"
    (head,) = canned.heads
    assert f"authorization: bearer {secret}" in head.lower()
    assert "x-account: 7" in head.lower()
    assert secret not in await owner.dump()
    assert secret not in str(await api.show(effect))
    assert secret not in caplog.text


@pytest.mark.parametrize("secret", [None, "sécret", "two\nlines"])
async def test_a_secret_that_cannot_be_sent_is_no_reason_to_ask_without_it(
    api: Api, provider: Provider, secret: str | None, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    evidence = http_evidence(provider.port)
    evidence["http"]["secret"] = "billing-api"
    effect = await in_doubt(api, a_contract(evidence=evidence))
    provider.book(effect["effect_id"], amount_cents=AMOUNT)
    async with asking([f"127.0.0.1:{provider.port}"], lambda *_: secret) as source:
        await sweeper_of(api, source).once()
    shown = await api.show(effect)
    assert (shown["state"], provider.asked) == ("UNKNOWN", [])
    assert shown["evidence"][0]["answer"] == "unavailable"
    if secret:
        assert secret not in str(shown)
        assert secret not in caplog.text


async def test_the_look_up_can_go_by_the_providers_key(api: Api):
    async with serving(Canned()) as canned:
        evidence = http_evidence(canned.port)
        evidence["http"]["url"] = f"http://127.0.0.1:{canned.port}/by-key?key={{idempotency_key}}"
        evidence["answer"]["bind"] = {"pointer": "/key", "equals": "idempotency_key"}
        effect = await in_doubt(api, a_contract(evidence=evidence))
        key = effect["dispatch"]["idempotency_key"]
        canned.parts = (response(200, invoice(effect, key=key)),)
        async with asking([f"127.0.0.1:{canned.port}"]) as source:
            await sweeper_of(api, source).once()
    assert canned.heads[0].startswith(f"GET /by-key?key={key} HTTP/1.1\r\n")
    assert await api.state(effect) == "SUCCEEDED"


async def test_sensitive_arguments_are_compared_and_not_kept(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port)
    evidence["answer"]["match"] = {"/card": "/card"}
    schema = a_contract()["input_schema"]
    card = {"type": "string", "x-sensitive": True}
    properties = schema["properties"] | {"card": card}
    document = a_contract(evidence=evidence, input_schema=schema | {"properties": properties})
    for number, (booked, state) in enumerate(
        (("canary-1", "SUCCEEDED"), ("canary-2", "QUARANTINED"))
    ):
        effect = await in_doubt(
            api, document, arguments=ARGUMENTS | {"card": "canary-1"}, effect=f"effect-{number}"
        )
        provider.book(effect["effect_id"], card=booked)
        await sweep.once()
        assert await api.state(effect) == state
    assert "canary" not in await owner.dump()


async def test_a_reconciler_that_comes_late_changes_nothing(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    held = Held(sweep.sweeper.source)
    late = asyncio.create_task(sweeper_of(api, held, name="late").once())
    await held.has_asked.wait()
    claimed = await api.show(effect)
    assert (claimed["state"], claimed["fence"]) == ("RECONCILING", 3)
    assert await sweep.once() == 0, "it is claimed for a while"
    await owner.run_out(effect)
    assert await sweep.once() == 1
    shown = await api.show(effect)
    assert (shown["state"], shown["reason"]) == ("UNKNOWN", "the reconciler's lease ran out")
    provider.book(effect["effect_id"], amount_cents=AMOUNT)
    await sweep.once()
    settled = await api.show(effect)
    assert settled["state"] == "SUCCEEDED"
    held.may_answer.set()
    await late
    shown = await api.show(effect)
    answers = [(one["fence"], one["answer"]) for one in shown["evidence"]]
    assert answers == [(5, "applied"), (3, "absent")], "the late answer is kept"
    assert shown | {"evidence": []} == settled | {"evidence": []}


async def test_a_worker_that_finishes_while_the_provider_is_asked_is_evidence(
    api: Api, provider: Provider, sweep: Sweep
):
    """The effect was taken from it, so its report is refused; what it saw settles the effect."""
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    held = Held(sweep.sweeper.source)
    task = asyncio.create_task(sweeper_of(api, held).once())
    await held.has_asked.wait()
    assert (await api.report(effect, "succeeded")).refusal == (409, "fence_stale")
    held.may_answer.set()
    await task
    shown = await api.show(effect)
    assert sorted(one["answer"] for one in shown["evidence"]) == ["absent", "applied"]
    assert (shown["state"], shown["reason"]) == ("SUCCEEDED", "evidence: applied")


async def test_two_sweepers_ask_about_each_effect_once(api: Api, provider: Provider, sweep: Sweep):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effects: list[dict[str, Any]] = []
    for number in range(12):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        await api.report(effect, "unknown")
        provider.book(effect["effect_id"], amount_cents=AMOUNT)
        effects.append(effect)
    second = sweeper_of(api, sweep.sweeper.source, name="second")
    moved = await asyncio.gather(sweep.once(), second.once(), sweep.once())
    assert sum(moved) == 12
    assert sorted(provider.asked) == sorted(f"/effects/{one['effect_id']}" for one in effects)
    assert {await api.state(one) for one in effects} == {"SUCCEEDED"}


async def test_a_batch_is_worked_through_whatever_comes_first(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    for number in range(23):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        provider.book(effect["effect_id"], amount_cents=AMOUNT)
    await owner.rows("UPDATE effect_open SET due_at = clock_timestamp()")
    moved = []
    while number := await sweep.once():
        moved.append(number)
    assert sum(moved) == 46, "two steps each: the lease ran out, the provider was asked"
    assert len(await api.effects("state=SUCCEEDED")) == 23


async def test_one_tenants_trouble_is_not_another_ones(
    api: Api, other: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    schema = a_contract()["input_schema"]
    card = {"type": "string", "x-sensitive": True}
    properties = schema["properties"] | {"card": card}
    document = a_contract(
        evidence=http_evidence(provider.port), input_schema=schema | {"properties": properties}
    )
    troubled = {"arguments": ARGUMENTS | {"card": "4111"}}
    broken = [await in_doubt(one, document, **troubled) for one in (api, other)]
    # What one tenant has sealed cannot be opened any more.
    await owner.rows(
        "UPDATE effect_payload SET sealed = '\\x00' FROM tenant"
        " WHERE tenant.tenant_id = effect_payload.tenant_id AND slug = 'default'"
    )
    for effect in broken:
        provider.book(effect["effect_id"], amount_cents=AMOUNT)
    assert await sweep.once() == 2
    assert [await api.state(broken[0]), await other.state(broken[1])] == ["UNKNOWN", "SUCCEEDED"]
    assert "cannot be read" in (await api.show(broken[0]))["reason"], "and it is not asked for ever"


class Defective:
    """A source with a defect that shows at the first effect that it is asked about."""

    def __init__(self, source: Source) -> None:
        self._inner = source
        self._is_first = True

    async def ask(
        self, contract: Contract, question: EvidenceQuestion, asker: Asker
    ) -> Judgement | None:
        if self._is_first:
            self._is_first = False
            raise ZeroDivisionError
        return await self._inner.ask(contract, question, asker)


async def test_one_effects_trouble_is_not_another_ones(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    for number in range(3):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        await api.report(effect, "unknown")
        provider.book(effect["effect_id"], amount_cents=AMOUNT)
    assert await sweeper_of(api, Defective(sweep.sweeper.source)).once() == 3
    assert len(await api.effects("state=SUCCEEDED")) == 2
    (left,) = await api.effects("state=RECONCILING")
    await owner.run_out(left)
    await sweep.until(api, left, "SUCCEEDED")


async def test_what_a_key_ran_out_for_is_quarantined_by_the_sweep(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    effect = await in_doubt(api, a_contract(evidence=http_evidence(provider.port)))
    await sweep.until(api, effect, "RETRYABLE")
    shown = await api.show(effect)
    first = moment(shown["attempts"][0]["dispatched_at"])
    assert moment(shown["due_at"]) == first + timedelta(seconds=86400 - 2 * 30)
    await owner.run_out(effect)
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], shown["events"][-1]["transition"]) == ("QUARANTINED", "T10")

"""The provider's signed messages: whenever, in whatever order and however often they come."""

import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from tests.api import Api, running
from tests.builders import ARGUMENTS, a_contract, http_evidence
from tests.fixtures import Owner, Sweep, sweeper_of

pytestmark = pytest.mark.usefixtures("histories")

OURS, NEXT, THEIRS = ("whsec_" + b64encode(bytes([one]) * 32).decode() for one in (1, 2, 3))
PATH = "/v1/webhooks/default/acme"
RUN = "019ad000-0000-7000-8000-000000000000"
WEBHOOK = {
    "source": "acme",
    "id": "/data/effect_id",
    "state": "/data/status",
    "applied": ["applied"],
    "rejected": ["rejected"],
    "in_progress": ["pending"],
    "reference": "/data/id",
    "match": {"/data/amount_cents": "/amount_cents"},
}
EVIDENCE = {"source": "webhook", "webhook": WEBHOOK}


def secrets_file(folder: Path) -> Path:
    file = folder / "secrets.json"
    signing = {"acme": {"webhook": [OURS, NEXT]}, "asked": {"host": "a.example:1", "secret": OURS}}
    file.write_text(json.dumps({"default": signing, "other": {"acme": {"webhook": [THEIRS]}}}))
    file.chmod(0o600)
    return file


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncGenerator[Api]:
    """The application, with secrets of two tenants whose provider sends messages."""
    async with running(database_url, tmp_path / "home", secrets_file=secrets_file(tmp_path)) as api:
        yield api


@pytest.fixture
async def sweep(api: Api) -> Sweep:
    """The reconciler, which has nobody to ask."""

    class Nobody:
        async def ask(self, contract: Any, question: Any, asker: Any) -> None:
            return None

    return sweeper_of(api, Nobody())


def about(effect: dict[str, Any], status: str, **facts: Any) -> bytes:
    """Return the body of a message about an effect."""
    data = {"effect_id": effect["effect_id"], "status": status, "id": "inv_1"}
    amount = {"amount_cents": ARGUMENTS["amount_cents"]}
    return json.dumps({"type": "invoice.changed", "data": data | amount | facts}).encode()


def signed(
    body: bytes, *, secret: str = OURS, message_id: str = "msg_1", late: float = 0
) -> dict[str, str]:
    """Return the headers of a message that was sent so many seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=late)
    signature = Webhook(secret).sign(message_id, at, body.decode())
    seconds = str(int(at.timestamp()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": signature,
    }


async def sent(
    api: Api, body: bytes, headers: dict[str, str] | None = None, *, path: str = PATH
) -> httpx.Response:
    """Send a message as a provider does: with no token."""
    nobody = api.speaking_for("")
    async with nobody.http as http:
        return await http.post(path, content=body, headers=headers or signed(body))


async def message(api: Api, effect: dict[str, Any], status: str, number: int = 1) -> None:
    body = about(effect, status)
    answer = await sent(api, body, signed(body, message_id=f"msg_{number}"))
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_message_settles_what_nobody_can_be_asked_about(
    api: Api, owner: Owner, sweep: Sweep
):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    await api.report(effect, "unknown")
    await sweep.once()
    waiting = await api.show(effect)
    assert (waiting["state"], waiting["evidence"]) == ("UNKNOWN", [])
    await owner.put_off(effect)
    await message(api, effect, "applied")
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], shown["outcome"]["provider_reference"]) == ("SUCCEEDED", "inv_1")
    (evidence,) = shown["evidence"]
    assert (evidence["source"], evidence["answer"]) == ("webhook:acme", "applied")
    assert evidence["detail"] == "message msg_1: the provider has it"


async def test_a_message_may_come_before_the_workers_own_report(api: Api, sweep: Sweep):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    await message(api, effect, "applied")
    assert await api.state(effect) == "DISPATCHED"
    assert (await api.report(effect, "succeeded")).body["state"] == "SUCCEEDED"
    await message(api, effect, "applied", 2)
    assert await api.state(effect) == "SUCCEEDED"


async def test_the_same_message_again_changes_nothing(api: Api, owner: Owner):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    await api.report(effect, "failed")
    body = about(effect, "applied")
    for late in (0, 10, 200):
        answer = await sent(api, body, signed(body, late=late))
        assert answer.status_code == 204
    shown = await api.show(effect)
    assert (shown["state"], len(shown["evidence"])) == ("QUARANTINED", 1)
    assert (await api.resolve(effect, "FAILED")).status == 200
    assert (await sent(api, body, signed(body))).status_code == 204
    assert await api.state(effect) == "FAILED", "a person has seen that message"


@pytest.mark.parametrize(
    ("statuses", "report", "state"),
    [
        (("pending", "applied"), "unknown", "SUCCEEDED"),
        (("pending", "rejected"), "unknown", "FAILED"),
        (("applied", "applied", "pending"), "succeeded", "SUCCEEDED"),
        (("applied", "rejected"), "unknown", "QUARANTINED"),
        (("applied",), "failed", "QUARANTINED"),
        (("rejected",), "succeeded", "QUARANTINED"),
        (("rejected", "pending"), "failed", "FAILED"),
    ],
)
async def test_whatever_the_order_it_ends_the_same(
    api: Api, sweep: Sweep, statuses: tuple[str, ...], report: str, state: str
):
    reference = await api.publish(a_contract(evidence=EVIDENCE))
    steps = [*enumerate(statuses), (None, report)]
    for number, order in enumerate(dict.fromkeys(permutations(steps))):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        for index, told in order:
            if index is None:
                await api.report(effect, told)
            else:
                await message(api, effect, told, index)
        await sweep.once()
        assert await api.state(effect) == state, order


async def test_what_is_not_what_was_sent_contradicts(api: Api):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    await api.report(effect, "succeeded")
    body = about(effect, "applied", amount_cents=1)
    assert (await sent(api, body)).status_code == 204
    shown = await api.show(effect)
    assert (shown["state"], shown["evidence"][0]["answer"]) == ("QUARANTINED", "contradicts")
    assert str(ARGUMENTS["amount_cents"]) not in shown["evidence"][0]["detail"]


async def test_what_was_sensitive_cannot_contradict_once_it_is_gone(api: Api, owner: Owner):
    schema = a_contract()["input_schema"]
    properties = schema["properties"] | {"card": {"type": "string", "x-sensitive": True}}
    webhook = WEBHOOK | {"match": {"/data/card": "/card", "/data/amount_cents": "/amount_cents"}}
    document = a_contract(
        evidence=EVIDENCE | {"webhook": webhook}, input_schema=schema | {"properties": properties}
    )
    reference = await api.publish(document)
    arguments = ARGUMENTS | {"card": "canary-4111"}
    effect = await api.dispatched(reference, arguments=arguments)
    other = await api.dispatched(reference, arguments=arguments, effect="effect-2")
    for each in (effect, other):
        body = about(each, "applied", card="canary-1")
        if each is effect:
            await api.report(each, "succeeded")
        assert (await sent(api, body)).status_code == 204
    assert (await api.show(effect))["evidence"][0]["answer"] == "applied"
    assert (await api.show(other))["evidence"][0]["answer"] == "contradicts", "it was still known"
    assert "canary" not in await owner.dump()


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": "v1,"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1"},
        {"webhook-signature": "v1,!"},
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "nan"},
        {"Authorization": "Bearer tk_nothing"},
    ],
    ids=str,
)
async def test_a_message_that_is_not_the_providers_is_not_believed(
    api: Api, owner: Owner, change: dict[str, str]
):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    before = await owner.counts()
    body = about(effect, "applied")
    headers = signed(body, secret=THEIRS) if "Authorization" in change else signed(body)
    answer = await sent(api, body, headers | change)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert await owner.counts() == before


async def test_nothing_else_tells_what_is_there(api: Api, other: Api, owner: Owner):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    body = about(effect, "applied")
    answers = [
        await sent(api, b"{}", signed(body)),  # another body
        await sent(api, body, signed(body, secret=THEIRS)),
        await sent(api, body, path="/v1/webhooks/other/acme"),
        await sent(api, body, path="/v1/webhooks/nobody/acme"),
        await sent(api, body, path="/v1/webhooks/default/none"),
        await sent(api, body, path="/v1/webhooks/default/asked"),  # a secret that is sent
        await sent(api, body, signed(body, late=310)),
        await sent(api, body, signed(body, late=-310)),
        await sent(api, b"\xff", signed(b"{}")),
        await sent(api, body, signed(body, message_id="m" * 201)),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers[:-1]}) == 1
    assert (await api.show(effect))["evidence"] == []


async def test_a_secret_is_replaced_without_a_gap(api: Api):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    body = about(effect, "applied")
    assert (await sent(api, body, signed(body, secret=NEXT))).status_code == 204
    both = signed(body, message_id="msg_2")
    both["webhook-signature"] = (
        f"v1a,AAAA v1,{b64encode(bytes(32)).decode()} " + both["webhook-signature"]
    )
    assert (await sent(api, body, both)).status_code == 204
    assert len((await api.show(effect))["evidence"]) == 2


async def test_a_message_about_nothing_that_is_recorded_is_to_be_sent_again(
    api: Api, other: Api, owner: Owner
):
    mine = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    theirs = await other.dispatched(await other.publish(a_contract(evidence=EVIDENCE)))
    silent = a_contract(name="billing.silent", evidence=http_evidence(9))
    deaf = await api.dispatched(await api.publish(silent), effect="effect-2")
    elsewhere = EVIDENCE | {"webhook": WEBHOOK | {"source": "umbrella", "id": "/id"}}
    foreign = await api.publish(a_contract(name="billing.foreign", evidence=elsewhere))
    strange = await api.dispatched(foreign, effect="effect-3")
    unknown = {"effect_id": f"{RUN}.7"}
    before = await owner.counts()
    for effect in (theirs, unknown):
        answer = await sent(api, about(effect, "applied"))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert await owner.counts() == before, "nothing is stored for whoever guesses"
    # What names no effect, or one whose contract does not listen to it, is not for us.
    for effect in (deaf, strange):
        assert (await sent(api, about(effect, "applied"))).status_code == 204
    for body in (b"{}", b"[]", b"null", about(mine, "applied").replace(b"effect_id", b"order_id")):
        assert (await sent(api, body)).status_code == 204
    assert (await sent(api, about(mine | {"effect_id": "INV-7"}, "applied"))).status_code == 204
    assert (await sent(api, b"{")).status_code == 422
    many = [f"{RUN}.{number}" for number in range(1, 66)]
    assert (await sent(api, about(mine, "applied", others=many))).status_code == 413
    assert await owner.counts() == before
    await message(api, mine, "applied")
    assert len((await api.show(mine))["evidence"]) == 1


async def test_each_contract_says_where_its_effect_is_named(api: Api):
    """Two tools of one provider, whose messages have different forms."""
    first = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    form = WEBHOOK | {"id": "/object/metadata/effect", "state": "/object/state", "match": {}}
    other = a_contract(name="billing.other", evidence=EVIDENCE | {"webhook": form})
    second = await api.dispatched(await api.publish(other), effect="effect-2")
    await message(api, first, "applied")
    told = {"object": {"metadata": {"effect": second["effect_id"]}, "state": "rejected"}}
    assert (await sent(api, json.dumps(told).encode())).status_code == 204
    shown = [await api.show(effect) for effect in (first, second)]
    assert [one["evidence"][0]["answer"] for one in shown] == ["applied", "rejected"]
    # A message in the form of another tool does not speak of this one.
    assert (await sent(api, about(second, "applied"))).status_code == 204
    assert len((await api.show(second))["evidence"]) == 1
    # One may speak of two effects, each in its own form, and name others.
    both = told | json.loads(about(first, "applied", former=f"{RUN}.9"))
    body = json.dumps(both).encode()
    assert (await sent(api, body, signed(body, message_id="msg_2"))).status_code == 204
    assert [len((await api.show(effect))["evidence"]) for effect in (first, second)] == [2, 2]


async def test_guesses_of_signatures_are_limited(database_url: str, tmp_path: Path):
    settings: dict[str, Any] = {"secrets_file": secrets_file(tmp_path), "guesses_per_minute": 3}
    async with running(database_url, tmp_path / "home", **settings) as api:
        statuses = [
            (await sent(api, b"{}", {"webhook-signature": "v1,AAAA"})).status_code for _ in range(5)
        ]
    assert statuses == [401, 401, 401, 429, 429]

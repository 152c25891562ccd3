"""Many callers at once: each question has one answer, whoever asks first."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.api import Answered, Api, running
from tests.builders import ARGUMENTS, a_contract
from tests.fixtures import Owner

CALLERS = 50
ROUNDS = 6


@pytest.fixture
async def api(database_url: str, owner: Owner, tmp_path: Path) -> AsyncGenerator[Api]:
    """The application with room for many transactions at once; at the end, the rules hold."""
    async with running(database_url, tmp_path / "home", pool_size=20) as api:
        yield api
        await owner.check_ledger()


def asking() -> dict[str, str]:
    return {"worker_id": str(uuid4()), "nonce": str(uuid4())}


def statuses(answers: list[Answered]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


async def test_one_of_many_owns_an_effect(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    answers = await asyncio.gather(
        *(api.plan(reference, dispatch=asking()) for _ in range(CALLERS))
    )
    assert statuses(answers) == {201: 1, 200: CALLERS - 1}
    assert len({answer.body["effect_id"] for answer in answers}) == 1
    owners = [answer.body for answer in answers if answer.body["dispatch"]["owned"]]
    assert len(owners) == 1
    assert {answer.body["dispatch"]["fence"] for answer in answers} == {1}
    shown = await api.show(owners[0])
    assert len(shown["attempts"]) == 1
    assert [event["transition"] for event in shown["events"]] == ["T1", "T2"]
    counts = await owner.counts()
    assert (counts["effect"], counts["effect_open"], counts["effect_attempt"]) == (1, 1, 1)


async def test_one_of_many_owns_an_effect_that_is_planned_already(api: Api):
    planned = (await api.plan(await api.publish(a_contract()))).body
    answers = await asyncio.gather(*(api.dispatch(planned, **asking()) for _ in range(CALLERS)))
    assert statuses(answers) == {200: CALLERS}
    assert sum(answer.body["dispatch"]["owned"] for answer in answers) == 1
    assert len((await api.show(planned))["attempts"]) == 1


async def test_one_question_asked_twice_at_once_owns_once(api: Api):
    asked = asking()
    reference = await api.publish(a_contract())
    answers = await asyncio.gather(*(api.plan(reference, dispatch=asked) for _ in range(10)))
    assert all(answer.body["dispatch"]["owned"] for answer in answers), "it is the same worker"
    assert {answer.body["dispatch"]["fence"] for answer in answers} == {1}
    assert len((await api.show(answers[0].body))["attempts"]) == 1


async def test_one_key_is_one_effect(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    answers = await asyncio.gather(
        *(
            api.plan(reference, key="order-7", run=f"run-{number % 7}", effect=f"effect-{number}")
            for number in range(CALLERS)
        )
    )
    assert statuses(answers) == {201: 1, 200: CALLERS - 1}
    assert len({answer.body["effect_id"] for answer in answers}) == 1
    assert await owner.one("SELECT count(*) FROM effect") == 1


async def test_one_key_is_never_two_calls(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    answers = await asyncio.gather(
        *(
            api.plan(
                reference,
                key="order-7",
                effect=f"effect-{number}",
                arguments=ARGUMENTS | {"amount_cents": 1 + number % 2},
            )
            for number in range(20)
        )
    )
    assert statuses(answers) == {201: 1, 200: 9, 409: 10}
    assert {answer.code for answer in answers if answer.status == 409} == {"effect_conflict"}
    assert await owner.one("SELECT count(*) FROM effect") == 1


async def test_a_run_has_one_id(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    answers = await asyncio.gather(
        *(api.plan(reference, effect=f"effect-{number}") for number in range(20))
    )
    assert statuses(answers) == {201: 20}
    assert len({answer.body["run_id"] for answer in answers}) == 1
    assert await owner.one("SELECT count(*) FROM effect_idem") == 1


async def test_a_run_has_one_version(api: Api):
    references = [await api.publish(a_contract(version=f"{major}.0")) for major in (2, 3)]
    answers = await asyncio.gather(
        *(api.plan(references[number % 2], effect=f"effect-{number}") for number in range(20))
    )
    assert statuses(answers) == {201: 10, 409: 10}
    assert {answer.code for answer in answers if answer.status == 409} == {"mixed_versions"}
    assert len({answer.body["version"] for answer in answers if answer.status == 201}) == 1


async def test_a_version_is_published_once(api: Api, owner: Owner):
    await api.credential("billing-api")
    same = await asyncio.gather(*(api.submit(a_contract()) for _ in range(10)))
    assert statuses(same) == {201: 1, 200: 9}
    others = await asyncio.gather(
        *(api.submit(a_contract(version="3.0", title=f"Send {number}")) for number in range(10))
    )
    assert statuses(others) == {201: 1, 409: 9}
    assert {answer.code for answer in others if answer.status == 409} == {"contract_exists"}
    assert await owner.one("SELECT count(*) FROM contract") == 2


async def test_two_versions_at_once_are_held_against_each_other(api: Api):
    await api.credential("billing-api")
    schema = a_contract()["input_schema"]
    answers = await asyncio.gather(
        *(
            api.submit(
                a_contract(
                    version=f"2.{number}",
                    input_schema=schema
                    | {"properties": schema["properties"] | {"memo": {"const": number}}},
                )
            )
            for number in range(5)
        )
    )
    assert statuses(answers) == {201: 1, 409: 4}
    assert {answer.code for answer in answers if answer.status == 409} == {"review_required"}


async def test_an_effect_is_given_up_once(api: Api):
    planned = (await api.plan(await api.publish(a_contract()))).body
    answers = await asyncio.gather(*(api.cancel(planned) for _ in range(10)))
    assert statuses(answers) == {200: 10}
    assert len((await api.show(planned))["events"]) == 2


async def test_of_reports_that_disagree_one_settles_an_effect(api: Api):
    reference = await api.publish(a_contract())
    for number in range(ROUNDS):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        answers = await asyncio.gather(
            *(api.report(effect, outcome) for outcome in ("succeeded", "failed", "unknown") * 4)
        )
        assert statuses(answers) == {200: 4, 409: 8}, "one of the three, and the same again"
        shown = await api.show(effect)
        steps = [event["transition"] for event in shown["events"]]
        # The opposite of what settled it is evidence: it is opened again, once, for a person.
        assert steps in (["T1", "T2", "T3", "T12"], ["T1", "T2", "T4"])
        assert len(shown["outcomes"]) == steps.count("T3")


async def one_call(
    api: Api, reference: dict[str, Any], name: str, *, finish: bool = False
) -> Answered:
    await asyncio.sleep(random.uniform(0, 0.05))
    worker = asking()
    answer = await api.plan(reference, run=f"run-{name}", dispatch=worker)
    if finish and answer.status == 201:
        reported = await api.report(answer.body, "succeeded", worker_id=worker["worker_id"])
        assert reported.status == 200
    return answer


async def check_retired(owner: Owner) -> None:
    """Nothing is open on a version that is retired, at whatever moment one looks."""
    open_effects = await owner.rows(
        "SELECT open.state, contract.version FROM effect_open AS open"
        " JOIN contract USING (contract_id)"
        " JOIN contract_state AS state ON state.contract_id = open.contract_id"
        " WHERE state.lifecycle = 'RETIRED'"
    )
    assert open_effects == []


async def test_no_dispatch_slips_past_a_retirement(api: Api, owner: Owner):
    api.app.state.lease_seconds_max = 0
    for major in range(1, ROUNDS + 1):
        reference = await api.publish(a_contract(version=f"{major}.0"))

        async def retire(reference: dict[str, Any] = reference) -> Answered:
            await asyncio.sleep(random.uniform(0, 0.02))
            answer = await api.retire(reference)
            await check_retired(owner)
            return answer

        retirement, *calls = await asyncio.gather(
            retire(),
            *(one_call(api, reference, f"{major}-{number}") for number in range(CALLERS)),
        )
        sent = [call for call in calls if call.status == 201]
        refused = {call.code for call in calls if call.status != 201}
        if retirement.status == 200:
            assert sent == [], "what was sent is open, and so it stands in the way"
            assert refused <= {"contract_migrating", "contract_retired"}
        else:
            assert retirement.refusal == (409, "contract_in_use")
            assert refused <= {"contract_migrating"}
            found = sum(one["count"] for one in retirement.body["facts"]["blockers"])
            assert 0 < found <= len(sent)
        await check_retired(owner)


async def test_a_version_retires_while_its_last_calls_finish(api: Api, owner: Owner):
    api.app.state.lease_seconds_max = 0
    for major in range(1, ROUNDS + 1):
        reference = await api.publish(a_contract(version=f"{major}.0"))

        async def retire(reference: dict[str, Any] = reference) -> None:
            await asyncio.sleep(random.uniform(0, 0.05))
            while (await api.retire(reference)).status != 200:
                await check_retired(owner)
            await check_retired(owner)

        await asyncio.gather(
            retire(),
            *(
                one_call(api, reference, f"{major}-{number}", finish=True)
                for number in range(CALLERS)
            ),
        )
    assert await owner.one("SELECT count(*) FROM effect_open") == 0


async def test_a_credential_that_rotates_under_many_dispatches_stops_the_rest(
    api: Api, owner: Owner
):
    reference = await api.publish(a_contract())
    planned = [
        (await api.plan(reference, effect=f"effect-{number}")).body for number in range(CALLERS)
    ]
    has_rotated = asyncio.Event()

    async def rotate() -> None:
        await asyncio.sleep(0.05)
        await api.rotate("billing-api")
        has_rotated.set()

    async def dispatch(effect: dict[str, Any]) -> Answered:
        await asyncio.sleep(random.uniform(0, 0.2))
        is_late = has_rotated.is_set()
        answer = await api.dispatch(effect, **asking())
        assert answer.code == "credential_policy_changed" or not is_late
        return answer

    _, answers = await asyncio.gather(
        rotate(), asyncio.gather(*(dispatch(effect) for effect in planned))
    )
    rest = [answer for answer in answers if answer.status != 200]
    assert {answer.refusal for answer in rest} <= {(409, "credential_policy_changed")}
    states = await owner.rows("SELECT state FROM effect_open")
    assert states == [("DISPATCHED",)] * (CALLERS - len(rest))
    late = await api.plan(reference, effect="late", dispatch=asking())
    assert late.refusal == (409, "credential_policy_changed")

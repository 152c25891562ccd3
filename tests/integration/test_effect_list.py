"""The list of effects by state: what is open is found by its open row, the rest by its outcome."""

import pytest

from tests.api import Api
from tests.builders import a_contract


@pytest.fixture
async def made(api: Api) -> dict[str, str]:
    """One effect in each of some states, by the state."""
    reference = await api.publish(a_contract())
    ids: dict[str, str] = {}
    ids["PLANNED"] = (await api.plan(reference, effect="planned")).body["effect_id"]
    for state, outcome in (
        ("DISPATCHED", None),
        ("UNKNOWN", "unknown"),
        ("FAILED", "failed"),
        ("SUCCEEDED", "succeeded"),
    ):
        effect = await api.dispatched(reference, effect=state)
        ids[state] = effect["effect_id"]
        facts = {
            "failed": {"error": {"code": "declined", "message": "No."}},
            "succeeded": {"result": {"invoice_id": "i-1"}},
        }
        if outcome is not None:
            await api.report(effect, outcome, **facts.get(outcome, {}))
    return ids


async def listed(api: Api, query: str) -> set[str]:
    answer = await api.ask("GET", f"/v1/effects?{query}")
    return {effect["effect_id"] for effect in answer.body["effects"]}


@pytest.mark.parametrize("state", ["PLANNED", "DISPATCHED", "UNKNOWN", "FAILED", "SUCCEEDED"])
async def test_a_state_lists_what_is_in_it_and_nothing_else(
    api: Api, made: dict[str, str], state: str
):
    assert await listed(api, f"state={state}") == {made[state]}


async def test_a_state_that_nothing_is_in_lists_nothing(api: Api, made: dict[str, str]):
    assert await listed(api, "state=QUARANTINED") == set()
    assert await listed(api, "state=ABANDONED") == set()
    assert await listed(api, "state=SUCCEEDED&open=true") == set()
    assert await listed(api, "state=PLANNED&open=true") == {made["PLANNED"]}

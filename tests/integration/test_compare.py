"""Comparing over HTTP: published versions, documents and schemas, in any sensible mixture."""

from typing import Any

import pytest

from tests.api import Answered, Api
from tests.builders import a_contract
from tests.fixtures import Owner

NAME = "billing.send_invoice"
INPUT: dict[str, Any] = a_contract()["input_schema"]
LONGER = INPUT | {"properties": INPUT["properties"] | {"note": {"type": "string"}}}
NEEDY = LONGER | {"required": [*INPUT["required"], "note"]}


async def compare(api: Api, old: Any, new: Any, **more: Any) -> Answered:
    return await api.ask("POST", "/v1/compare", {"old": old, "new": new, **more})


@pytest.fixture
async def published(api: Api) -> Api:
    """The service with two versions of one tool."""
    await api.publish(a_contract())
    await api.publish(a_contract(version="3.0", input_schema=NEEDY))
    return api


async def test_published_versions_and_documents_give_one_answer(published: Api, owner: Owner):
    before = await owner.counts()
    document = a_contract(version="3.0.0", input_schema=NEEDY)
    answers = [
        await compare(published, old, new)
        for old in (f"{NAME}@2.1", a_contract())
        for new in (f"{NAME}@3.0.0", document)
    ]
    assert [answer.status for answer in answers] == [200] * 4
    assert all(answer.body == answers[0].body for answer in answers)
    body = answers[0].body
    assert (body["compared"], body["verdict"], body["bump"]) == (
        "contracts",
        "incompatible",
        "major",
    )
    witness = body["old_calls"]["declared"]["witness"]
    assert [each["pointer"] for each in witness["violations"]] == ["/note"]
    assert body["new_calls"]["declared"]["verdict"] == "incompatible"
    assert await owner.counts() == before


async def test_the_producer_decides_the_verdict_and_both_are_told(api: Api):
    opened = {key: each for key, each in INPUT.items() if key != "additionalProperties"}
    wider = {key: each for key, each in LONGER.items() if key != "additionalProperties"}
    old, new = a_contract(input_schema=opened), a_contract(version="2.2", input_schema=wider)
    for producer, verdict in (("declared", "compatible"), ("any", "incompatible")):
        body = (await compare(api, old, new, producer=producer)).body
        assert (body["producer"], body["verdict"]) == (producer, verdict)
        assert body["old_calls"]["declared"]["verdict"] == "compatible"
        assert body["old_calls"]["any"]["verdict"] == "incompatible"
    assert (await compare(api, old, new)).body["producer"] == "declared"


async def test_schemas_are_compared_by_themselves(api: Api):
    body = (await compare(api, {"type": "string"}, True)).body
    assert (body["compared"], body["verdict"]) == ("schemas", "compatible")
    assert body["new_to_old"]["any"]["verdict"] == "incompatible"


@pytest.mark.parametrize(
    ("old", "new", "refusal", "pointer"),
    [
        (f"{NAME}@9.9", f"{NAME}@3.0", (404, "tool_contract_not_found"), "/old"),
        (f"{NAME}@2.1", "tools.none@1.0", (404, "tool_contract_not_found"), "/new"),
        (NAME, f"{NAME}@3.0", (422, "invalid_request"), "/old"),
        (f"{NAME}@2.1", f"{NAME}@latest", (422, "invalid_request"), "/new"),
        (f"{NAME}@2.1", {"type": "object"}, (422, "invalid_request"), None),
        (
            f"{NAME}@2.1",
            a_contract(effect_class="MAYBE"),
            (422, "invalid_contract"),
            "/new/effect_class",
        ),
        ({"type": "strin"}, {}, (422, "invalid_contract"), "/old/type"),
        ({}, {"$ref": "https://example.com/a"}, (422, "invalid_contract"), "/new/$ref"),
        ({}, 1, (422, "invalid_request"), "/new"),
        ({}, None, (422, "invalid_request"), "/new"),
    ],
)
async def test_what_cannot_be_compared(
    published: Api, old: Any, new: Any, refusal: tuple[int, str], pointer: str | None
):
    answer = await compare(published, old, new)
    assert answer.refusal == refusal
    found = answer.body.get("pointer")
    assert found == pointer or (found or "").startswith(f"{pointer}/")


async def test_there_are_two_producers(api: Api):
    answer = await compare(api, {}, {}, producer="nobody")
    assert (answer.refusal, answer.body["pointer"]) == ((422, "invalid_request"), "/producer")


async def test_a_version_of_another_tenant_is_not_there(published: Api, other: Api):
    answer = await compare(other, f"{NAME}@2.1", {})
    assert answer.refusal == (404, "tool_contract_not_found")


async def test_a_hostile_pair_takes_its_bounded_time(api: Api):
    """Each union multiplies the cases; the answer comes all the same, and is no wrong yes.

    With all of p1 to p20 wrong and p39 absent, a value satisfies `old` and not `new`; declared
    values are none such, since only the branch that holds evaluates its property.
    """
    branches = [{"properties": {f"p{n}": {"enum": [*range(n)]}}} for n in range(1, 40)]
    old = {"allOf": [{"anyOf": branches} for _ in range(20)]}
    new = {"allOf": [{"anyOf": branches[::-1][n:]} for n in range(20)]}
    answer = await compare(api, old, new)
    assert answer.status == 200
    assert answer.body["old_to_new"]["any"]["verdict"] in ("incompatible", "undecided")
    assert answer.body["old_to_new"]["declared"]["verdict"] in ("compatible", "undecided")

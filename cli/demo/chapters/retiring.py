"""An old version goes, when nothing refers to it any more."""

from typing import Final

from cli.connection import JsonObject
from cli.demo.stage import INVOICE, Stage
from tallystick import EffectNotOwned, ToolReference
from tallystick.errors import ContractInUse

RUN: Final = "evening"
ORDER: Final[JsonObject] = {"customer_id": "C-42", "amount_cents": 800}


async def the_old_version_goes(stage: Stage) -> None:
    """Retire 1.0: refused with its blockers, drained, and done."""
    stage.story.chapter(
        "An old version goes when nothing refers to it",
        """1.0 is to be retired. That closes it to new work at once; but it stays for as long as an
        open effect or a resolution that somebody relies on still refers to it.""",
    )
    old = await stage.reference(INVOICE)
    planned = await stage.plan(old, ORDER, run=RUN, effect="last-invoice")
    await stage.client.resolve(old)
    facts = await stage.refused("the first try is refused", "contract_in_use", _retire(stage))
    _show_blockers(stage, facts)
    await stage.refused(
        "no new work begins on 1.0",
        "contract_migrating",
        stage.plan(old, ORDER, run=RUN, effect="one-more-invoice"),
    )
    await _drain(stage, planned)
    await _retired(stage, old)
    await _move_on(stage)


async def _retire(stage: Stage) -> str:
    body = {"reason": "everybody uses 2.0"}
    answer = await stage.registry.post("rollouts", INVOICE, "1.0", "retire", body=body)
    return answer["state"]


def _show_blockers(stage: Stage, facts: JsonObject) -> None:
    blockers = facts.get("blockers", [])
    named = {(blocker["kind"], blocker.get("state")) for blocker in blockers}
    stage.check(
        "it names each blocker: the planned effect, and the lease of the last resolution",
        ok=named == {("effects", "PLANNED"), ("leases", None)},
        answer=f"the version is {facts.get('state')}; {len(blockers)} blockers",
    )
    rows = [
        (
            f"{blocker['kind']} {blocker.get('state') or ''}",
            str(blocker["count"]),
            blocker["clears"],
        )
        for blocker in blockers
    ]
    stage.story.table(("Blocker", "Count", "What clears it"), rows)


async def _drain(stage: Stage, planned: str) -> None:
    """Let the planned effect run, as it may on a closed version; retire when the lease is over."""
    await stage.send_planned(planned)
    effect = await stage.show(planned)
    stage.check(
        "what was planned before still runs on 1.0",
        ok=(effect["state"], effect["version"]) == ("SUCCEEDED", "1.0.0"),
        answer=f"{effect['state']} on {effect['version']}",
    )
    state, tries = "", 0
    async for _ in stage.moments():
        tries += 1
        try:
            state = await _retire(stage)
            break
        except ContractInUse as refusal:
            state = refusal.detail
    stage.check(
        "drained, it is retired",
        ok=state == "RETIRED",
        answer=f"{state}, at try {tries} since the effect is done",
    )


async def _retired(stage: Stage, old: ToolReference) -> None:
    await stage.refused("1.0 resolves no more", "contract_retired", stage.client.resolve(old))
    await stage.refused(
        "no effect is planned on it",
        "contract_retired",
        stage.plan(old, ORDER, run=RUN, effect="too-late"),
    )
    late = await stage.client.plan(old, ORDER, run="old-queue", effect="job-17", origin="queue")
    try:
        await stage.take(late.effect_id)
        told = "it was given to a worker"
    except EffectNotOwned as refusal:
        told = str(refusal)
    times = await stage.requests_for(late.effect_id)
    stage.check(
        "an old job from a queue is neither lost nor run: it is quarantined for a person",
        ok=late.state == "QUARANTINED" and times == 0,
        answer=told,
    )


async def _move_on(stage: Stage) -> None:
    newer = await stage.reference(INVOICE, "2.0")
    sent = await stage.send(newer, {**ORDER, "currency": "EUR"}, run="night", effect="invoice")
    effect = await stage.show(sent)
    stage.check(
        "new work runs on 2.0",
        ok=(effect["state"], effect["version"]) == ("SUCCEEDED", "2.0.0"),
        answer=f"{effect['state']} on {effect['version']}",
    )

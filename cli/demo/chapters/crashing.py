"""Workers that are killed in the middle of a call, and what becomes of their effects."""

import asyncio
import signal
from dataclasses import dataclass
from typing import Final

from cli.connection import JsonObject
from cli.demo.processes import working
from cli.demo.stage import INVOICE, TRANSFER, Stage, path_of
from cli.demo.worker import AFTER_SEND, BEFORE_SEND
from tallystick import EffectNotOwned

RUN: Final = "noon"
ORDER: Final[JsonObject] = {"customer_id": "C-7", "amount_cents": 4_200}
PAYMENT: Final[JsonObject] = {"account": "A-9", "amount_cents": 70_000}


@dataclass(frozen=True, slots=True)
class Crash:
    """One worker that is killed: its effect, when, and where the effect has to end up."""

    tool: str
    arguments: JsonObject
    effect: str
    moment: str
    ends: str


CRASHES: Final = (
    Crash(INVOICE, ORDER, "invoice-sent", AFTER_SEND, "SUCCEEDED"),
    Crash(INVOICE, ORDER, "invoice-unsent", BEFORE_SEND, "RETRYABLE"),
    Crash(TRANSFER, PAYMENT, "transfer-sent", AFTER_SEND, "SUCCEEDED"),
    Crash(TRANSFER, PAYMENT, "transfer-unsent", BEFORE_SEND, "QUARANTINED"),
)


async def four_workers_die(stage: Stage) -> None:
    """Kill four workers, and wait until each effect is settled by evidence."""
    stage.story.chapter(
        "Four workers are killed, and nobody guesses",
        """Each is a process of its own that gets SIGKILL: two after the provider accepted and
        before they could say so, two before they sent anything. To the ledger all four look the
        same. Their leases run out, their effects become UNKNOWN, and the reconciler asks the
        provider. (This takes as long as the leases: some seconds.)""",
    )
    found = await asyncio.gather(*(_kill(stage, crash) for crash in CRASHES))
    effects = [
        await stage.until(effect_id, crash.ends, "FAILED", "QUARANTINED", "SUCCEEDED")
        for crash, (effect_id, _) in zip(CRASHES, found, strict=True)
    ]
    stage.check(
        "all four workers ended by SIGKILL",
        ok=all(status == -signal.SIGKILL for _, status in found),
        answer=f"{len(found)} processes, ended by signal {signal.SIGKILL.value}",
    )
    for crash, effect in zip(CRASHES, effects, strict=True):
        stage.left[crash.effect] = effect["effect_id"]
        _check_settled(stage, crash, effect)


async def _kill(stage: Stage, crash: Crash) -> tuple[str, int]:
    """Plan an effect, let a worker begin it, and kill the worker; return the id and the status."""
    reference = await stage.reference(crash.tool)
    effect_id = await stage.plan(reference, crash.arguments, run=RUN, effect=crash.effect)
    async with working(stage.services, effect_id, pause=crash.moment) as worker:
        told = await worker.hear("about_to_send")
        stage.left[f"{crash.effect}-key"] = str(told["key"])
        if crash.moment == AFTER_SEND:
            await worker.hear("accepted")
        return effect_id, await worker.kill()


def _check_settled(stage: Stage, crash: Crash, effect: JsonObject) -> None:
    when = "after" if crash.moment == AFTER_SEND else "before"
    noun = "invoice" if crash.tool == INVOICE else "transfer"
    lost = any(event["to_state"] == "UNKNOWN" for event in effect["events"])
    answers = [one["answer"] for one in effect["evidence"]]
    says = "applied" if crash.moment == AFTER_SEND else "absent"
    stage.check(
        f"the {noun} whose worker was killed {when} sending becomes {crash.ends}",
        ok=effect["state"] == crash.ends and lost and answers[-1:] == [says],
        answer=f"{effect['effect_class']}: {path_of(effect)};"
        f" the provider says {answers[-1] if answers else 'nothing'}",
    )


async def the_recorded_version(stage: Stage) -> None:
    """Run the unsent invoice again, although a newer contract is published."""
    stage.story.chapter(
        "A new attempt runs on the recorded contract, never on the newest",
        """The unsent invoice is RETRYABLE: the provider does not have it, and honours the same key.
        Another worker takes it. 2.0 has been published all the while, and must not be used.""",
    )
    effect_id = stage.left["invoice-unsent"]
    newer = await stage.reference(INVOICE, "2.0")
    euros = {**ORDER, "currency": "EUR"}
    await stage.refused(
        "the tuple of 2.0 for an effect of 1.0 is refused",
        "tool_schema_drift",
        stage.take(effect_id, newer),
    )
    await stage.refused(
        "the same effect with the arguments of 2.0 is refused",
        "effect_conflict",
        stage.plan(newer, euros, run=RUN, effect="invoice-unsent"),
    )
    await stage.refused(
        "a new effect on 2.0 in a run that uses 1.0 is refused",
        "mixed_versions",
        stage.plan(newer, euros, run=RUN, effect="invoice-in-euros"),
    )
    async with working(stage.services, effect_id) as worker:
        told = await worker.hear("about_to_send")
        await worker.hear("reported")
    effect = await stage.show(effect_id)
    stage.check(
        "another worker runs it on version 1.0.0",
        ok=effect["state"] == "SUCCEEDED" and effect["version"] == told["version"] == "1.0.0",
        answer=f"{path_of(effect)}; recorded and run as {effect['version']}",
    )
    workers = [attempt["worker_id"][:8] for attempt in effect["attempts"]]
    stage.check(
        "both attempts had one idempotency key",
        ok=told["key"] == stage.left["invoice-unsent-key"] and len(set(workers)) > 1,
        answer=f"worker {', then worker '.join(workers)}, both with {told['key']}",
    )


async def people_decide(stage: Stage) -> None:
    """Settle the unsent transfer by the words of two people, each with a token of their own."""
    stage.story.chapter(
        "What a machine must not decide, two people do",
        """The unsent transfer is NON_RETRYABLE. The provider does not have it; but a paused worker
        could still send it, and the bank knows no keys. So it is never sent again, and waits. One
        person's word is a proposal; another one's, by a token of their own, makes it so.""",
    )
    effect_id = stage.left["transfer-unsent"]
    try:
        await stage.take(effect_id)
    except EffectNotOwned as refusal:
        told, state = str(refusal), refusal.state
    else:
        told, state = "it was given to a worker", ""
    stage.check("no worker gets it", ok=state == "QUARANTINED", answer=told)
    resolve = ("effects", effect_id, "resolve")
    word = {"to": "FAILED", "reason": "never sent", "evidence": "the bank's statement of today"}
    await stage.refused(
        "nobody may have it sent again",
        "effect_not_retryable",
        stage.registry.post(*resolve, body=word | {"to": "RETRYABLE"}),
    )
    await stage.registry.post(*resolve, body=word)
    effect = await stage.registry.post(*resolve, body=word)
    proposal: JsonObject = effect["proposal"] or {}
    stage.check(
        "one person, however often, only proposes",
        ok=effect["state"] == "QUARANTINED" and proposal.get("by") == "admin",
        answer=f"{effect['state']}; proposed by {proposal.get('by')}: {proposal.get('to')}",
    )
    async with stage.as_operator("ben") as ben:
        await ben.post(*resolve, body=word | {"reason": "I see no payment either"})
    effect = await stage.show(effect_id)
    decided, reason = effect["outcome"]["decided_by"], effect["outcome"]["reason"]
    stage.check(
        "a second one closes it, and the record names both",
        ok=effect["state"] == "FAILED" and decided == "person:ben" and "person:admin" in reason,
        answer=f"{path_of(effect)}; decided by {decided}: {reason}",
    )

"""Effects: written down before they run, and never done twice."""

from cli.connection import JsonObject
from cli.demo.stage import INVOICE, TRANSFER, Stage
from tallystick import EffectNotOwned

RUN = "morning"
ORDER: JsonObject = {"customer_id": "C-42", "amount_cents": 12_500}


async def called_once(stage: Stage) -> None:
    """Run an effect of each class, ask for one again, and lose a credential in between."""
    stage.story.chapter(
        "A call is written down before it runs, and never runs twice",
        """The record of an effect is durable before the first byte goes to the provider. Whoever
        asks for the same effect again (a framework's retry, a resumed graph) gets the record.""",
    )
    effect_id = await _one_of_each_class(stage)
    await _again(stage, effect_id)
    await _changed_in_between(stage)


async def _one_of_each_class(stage: Stage) -> str:
    calls: tuple[tuple[str, JsonObject], ...] = (
        (INVOICE, ORDER),
        (TRANSFER, {"account": "A-7", "amount_cents": 9_900}),
        ("messages.post", {"channel": "billing", "text": "Invoice sent."}),
        ("crm.add_note", {"customer_id": "C-42", "text": "Invoiced."}),
    )
    ids = [
        await stage.send(
            await stage.reference(tool), arguments, run=RUN, effect=tool.partition(".")[2]
        )
        for tool, arguments in calls
    ]
    effects = [await stage.show(each) for each in [*ids, await _look_up(stage)]]
    stage.check(
        "an effect of each class is dispatched and completed",
        ok=all(effect["state"] == "SUCCEEDED" for effect in effects),
        answer=f"{len(effects)} effects; the invoice is {ids[0]}",
    )
    rows = [
        (
            f"{effect['tool']}@{effect['version']}",
            effect["effect_class"],
            effect["state"],
            effect["outcome"]["provider_reference"] or "(reads)",
        )
        for effect in effects
    ]
    stage.story.table(("Tool", "Effect class", "Ledger", "Provider"), rows)
    return ids[0]


async def _look_up(stage: Stage) -> str:
    reference = await stage.reference("catalog.lookup_customer")
    asked = stage.client.effect(reference, {"customer_id": "C-42"}, run=RUN, effect="lookup")
    async with asked as attempt:
        await attempt.succeeded((await stage.provider.get("/customers/C-42")).json())
    return attempt.effect_id


async def _again(stage: Stage, effect_id: str) -> None:
    reference = await stage.reference(INVOICE)
    try:
        await stage.send(reference, ORDER, run=RUN, effect="send_invoice")
        told, recorded = "it ran again", None
    except EffectNotOwned as answer:
        told, recorded = f"{answer.state}, result {answer.result()}", answer.effect_id
    times = await stage.requests_for(effect_id)
    stage.check(
        "the same effect again answers the record, and the provider is not called",
        ok=recorded == effect_id and times == 1,
        answer=f"{told}; requests that the provider got for it: {times}",
    )
    await stage.refused(
        "another amount under the same effect is refused",
        "effect_conflict",
        stage.send(reference, ORDER | {"amount_cents": 1}, run=RUN, effect="send_invoice"),
    )
    await stage.refused(
        "arguments that break the schema are refused",
        "invalid_arguments",
        stage.send(reference, ORDER | {"discount": 5}, run=RUN, effect="discounted"),
    )


async def _changed_in_between(stage: Stage) -> None:
    reference = await stage.reference(INVOICE)
    planned = await stage.plan(reference, ORDER, run=RUN, effect="late_invoice")
    version = await stage.rotate("billing")
    await stage.refused(
        f"a planned effect whose credential is rotated to {version} meanwhile is not dispatched",
        "credential_policy_changed",
        stage.take(planned),
    )
    effect, times = await stage.show(planned), await stage.requests_for(planned)
    stage.check(
        "it is closed as REFUSED before anything was sent",
        ok=effect["state"] == "REFUSED" and times == 0,
        answer=f"{effect['state']}, and the provider got {times} requests for it",
    )
    await stage.attest(INVOICE, "1.0", "2.0")

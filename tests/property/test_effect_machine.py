"""The whole service against a small model of what an effect may do, in any order of events.

The model knows each effect's state and the number of its attempts, and predicts every answer. After
each step the database is held to what is always true, and to the model.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ledger.evidence import Answer
from ledger.judgement import Judgement
from ledger.settlement import CHECKS_MAX
from ledger.state import State
from reconciler.sources import Asker, HttpSource
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract
from tests.api import Answered, Api, running
from tests.builders import a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep, owning, sweeper_of

Result = TypeVar("Result")

ATTEMPTS_MAX: Final = 3
DUPLICATES_MAX: Final = 1
CLASSES: Final = ("IDEMPOTENT", "REPLAYABLE", "NON_RETRYABLE", "UNKNOWN", "PURE")
ONCE: Final = ("UNKNOWN", "NON_RETRYABLE")
VERDICTS: Final = ("unknown", "failed", "succeeded")
RESOLUTIONS: Final = ("RETRYABLE", "SUCCEEDED", "FAILED", "ABANDONED")
STEPS: Final = ("retire", "rollback", "suspend", "rotate", "attest")
CLOSED: Final = ("SUCCEEDED", "FAILED", "REFUSED", "CANCELLED", "ABANDONED")

classes = st.sampled_from(CLASSES)
verdicts = st.sampled_from(VERDICTS)
resolutions = st.sampled_from(RESOLUTIONS)
answers = st.sampled_from(sorted(Answer))


class Chosen(HttpSource):
    """A provider whose next answers the machine chooses."""

    def __init__(self) -> None:
        self.answer = Answer.UNAVAILABLE

    async def ask(self, contract: Contract, question: EvidenceQuestion, asker: Asker) -> Judgement:
        return Judgement(self.answer, "chosen")


@dataclass
class World:
    """One service for all examples, and the loop that it runs in."""

    runner: asyncio.Runner
    api: Api
    owner: Owner
    source: Chosen
    sweep: Sweep
    grace: Api
    examples: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)


@dataclass
class Tool:
    """What the model knows of a version."""

    effect_class: str
    reference: dict[str, Any]
    bound: int
    lifecycle: str = "ACTIVE"
    suspended: bool = False


@dataclass
class Known:
    """What the model knows of an effect."""

    effect: dict[str, Any]
    tool: Tool
    credential_version: int
    state: str
    attempts: int = 0
    unaccounted: int = 0
    is_due: bool = False
    is_spent: bool = False
    was_closed: bool = False
    was_absent: bool = False
    evidence: list[tuple[int, str, Answer]] = field(default_factory=list)
    dispatches: list[dict[str, Any]] = field(default_factory=list)
    reports: dict[int, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.state not in CLOSED

    def becomes(self, state: str, *, due: bool = False) -> None:
        self.state, self.is_due = state, due

    def heard(self, attempt: int, source: str, answer: Answer) -> None:
        """Note what was said of an attempt: after anything but "absent" that is asked anew."""
        self.evidence.append((attempt, source, answer))
        self.was_absent = False

    def said(self) -> set[Answer]:
        """Return the answers that settle the effect as it is."""
        return {
            answer
            for attempt, source, answer in self.evidence
            if (attempt == self.attempts or answer is Answer.APPLIED)
            and not (answer is Answer.REJECTED and source == "worker" and self.attempts > 1)
        }


class EffectMachine(RuleBasedStateMachine):
    """Runtimes, workers, operators, time and a provider, each doing what they like."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.api = world, world.api
        self.number = next(world.examples)
        self.run_name, self.slot = f"run-{self.number}", f"slot-{self.number}"
        self.credential = 1
        self.tools: dict[str, Tool] = {}
        self.known: dict[tuple[str, int], Known] = {}
        self.ask("POST", "/v1/credentials", {"name": self.slot})

    def ask(self, method: str, path: str, body: Any = None) -> Answered:
        return self.world.run(self.api.ask(method, path, body))

    def publish(self, effect_class: str) -> None:
        document = a_contract_of(
            effect_class,
            name=f"m{self.number}.{effect_class.lower()}",
            credential=self.slot,
            evidence=http_evidence(1),
            lease_seconds=3600,
            attempts_max=1 if effect_class in ONCE else ATTEMPTS_MAX,
            max_duplicates=DUPLICATES_MAX if effect_class == "REPLAYABLE" else None,
        )
        reference = self.world.run(self.api.publish(document))
        self.tools[effect_class] = Tool(effect_class, reference, bound=self.credential)

    def drawn(self, data: st.DataObject, *states: str) -> Known:
        """Draw one of the effects, and where there are any in these states, one of those."""
        wanted = [one for one, known in self.known.items() if known.state in states]
        return self.known[data.draw(st.sampled_from(wanted or list(self.known)))]

    def any_in(self, *states: str) -> bool:
        return any(known.state in states for known in self.known.values())

    # --- what the model predicts --------------------------------------------------------------

    def refusal(self, tool: Tool, presented: int, *, dispatching: bool) -> str | None:
        """Return the code that the registry has against a tuple now, or None."""
        if tool.lifecycle == "RETIRED":
            return "contract_retired"
        if tool.lifecycle == "MIGRATING" and not dispatching:
            return "contract_migrating"
        if tool.suspended:
            return "contract_suspended"
        if not presented == tool.bound == self.credential:
            return "credential_policy_changed"
        return None

    def predict_dispatch(self, known: Known) -> str | None:
        """Move the model's effect as a dispatch moves it; return the refusal, or None."""
        if known.state not in ("PLANNED", "RETRYABLE"):
            return None
        refusal = self.refusal(known.tool, known.credential_version, dispatching=True)
        if refusal is None and known.state == "RETRYABLE" and known.attempts >= ATTEMPTS_MAX:
            refusal = "effect_not_retryable"
        if refusal is None:
            known.becomes("DISPATCHED")
            known.attempts += 1
            known.is_spent = known.was_absent = False
        elif refusal != "contract_suspended":
            known.becomes("REFUSED" if known.state == "PLANNED" else "QUARANTINED")
        return refusal

    def predict_retry(self, known: Known) -> None:
        known.becomes("RETRYABLE" if known.attempts < ATTEMPTS_MAX else "QUARANTINED")

    def predict_settlement(self, known: Known, answer: Answer) -> None:
        effect_class = known.tool.effect_class
        if answer is not Answer.ABSENT:
            known.heard(known.attempts, "http", answer)
        said = known.said()
        if Answer.CONTRADICTS in said or {Answer.APPLIED, Answer.REJECTED} <= said:
            known.becomes("QUARANTINED")
        elif said & {Answer.APPLIED, Answer.REJECTED}:
            known.becomes("SUCCEEDED" if Answer.APPLIED in said else "FAILED")
        elif answer is Answer.ABSENT and not known.was_absent:
            known.becomes("UNKNOWN")
            known.was_absent = True
        elif answer is Answer.ABSENT and effect_class in ONCE:
            known.becomes("QUARANTINED")
        elif answer is Answer.ABSENT:
            self.predict_retry(known)
        elif not known.is_spent:
            known.becomes("UNKNOWN")
        elif effect_class == "REPLAYABLE" and known.unaccounted < DUPLICATES_MAX:
            self.predict_retry(known)
            known.unaccounted += known.state == "RETRYABLE"
        else:
            known.becomes("QUARANTINED")

    def predict_report(self, known: Known, verdict: str) -> None:
        is_pure = known.tool.effect_class == "PURE"
        was_applied = any(answer is Answer.APPLIED for _, _, answer in known.evidence)
        is_doubtful = was_applied or (known.unaccounted and not is_pure)
        if verdict == "succeeded":
            known.becomes("SUCCEEDED")
        elif verdict == "failed" and not is_doubtful:
            known.becomes("FAILED")
        elif is_pure:
            known.becomes("RETRYABLE")
        else:
            known.becomes("UNKNOWN", due=True)

    def predict_late(self, known: Known, verdict: str, attempt: int) -> None:
        """Move the model's effect as the report of a worker moves it that has lost it."""
        answer = Answer.APPLIED if verdict == "succeeded" else Answer.REJECTED
        if verdict == "unknown" or (attempt, "worker", answer) in known.evidence:
            return
        known.heard(attempt, "worker", answer)
        if known.tool.effect_class == "PURE":
            return
        if answer is Answer.REJECTED and known.attempts > 1:
            return
        contradicted = ("SUCCEEDED",) if answer is Answer.REJECTED else CLOSED[1:]
        if known.state == "UNKNOWN":
            known.is_due = True
        elif known.state == "RETRYABLE" and answer is Answer.APPLIED:
            known.becomes("UNKNOWN", due=True)
            known.is_spent = False
        elif known.state in contradicted:
            known.becomes("QUARANTINED")
            known.was_closed = True

    # --- runtimes and workers -----------------------------------------------------------------

    @initialize(effect_classes=st.lists(classes, min_size=1, max_size=2, unique=True))
    def begin(self, effect_classes: list[str]) -> None:
        # Few tools with a long history each tell more than many with a short one.
        for effect_class in effect_classes:
            self.publish(effect_class)
            for number in (1, 2):
                self.planned(effect_class, number, asks=True, queued=False)

    @rule(data=st.data(), number=st.integers(1, 3), asks=st.booleans(), queued=st.booleans())
    def plan(self, data: st.DataObject, number: int, asks: bool, queued: bool) -> None:
        effect_class = data.draw(st.sampled_from(list(self.tools)))
        self.planned(effect_class, number, asks=asks, queued=queued)

    def planned(self, effect_class: str, number: int, *, asks: bool, queued: bool) -> None:
        tool = self.tools[effect_class]
        answer = self.world.run(
            self.api.plan(
                tool.reference | {"credential_version": tool.bound},
                run=self.run_name,
                effect=f"{effect_class}-{number}",
                dispatch=self.api.asking() if asks else None,
                origin="queue" if queued else "runtime",
            )
        )
        known = self.known.get((effect_class, number))
        refusal = None
        if known is None:
            refusal = self.refusal(tool, tool.bound, dispatching=False)
            state = "PLANNED"
            if refusal == "contract_retired" and queued:
                refusal, state = None, "QUARANTINED"
            if refusal is None:
                assert answer.status == 201, answer
                known = Known(answer.body, tool, tool.bound, state)
                self.known[effect_class, number] = known
        else:
            assert answer.status != 201, answer
        if known is not None and asks:
            refusal = self.dispatched(known, answer)
        assert answer.code == refusal, answer

    @rule(data=st.data())
    def dispatch(self, data: st.DataObject) -> None:
        known = self.drawn(data, "PLANNED", "RETRYABLE")
        answer = self.world.run(self.api.dispatch(known.effect))
        assert answer.code == self.dispatched(known, answer), answer

    def dispatched(self, known: Known, answer: Answered) -> str | None:
        attempts = known.attempts
        refusal = self.predict_dispatch(known)
        if refusal is None:
            owned = known.attempts > attempts
            assert answer.body["dispatch"]["owned"] == owned, answer
            if owned:
                known.dispatches.append(answer.body)
        return refusal

    @rule(data=st.data(), verdict=verdicts, fence=st.integers(0, 9))
    def report(self, data: st.DataObject, verdict: str, fence: int) -> None:
        known = self.drawn(data, "DISPATCHED")
        effect = known.effect | {"dispatch": {"fence": fence}}
        stranger = self.world.run(self.api.report(effect, "succeeded", worker_id=str(uuid4())))
        assert stranger.refusal == (404, "not_found"), stranger
        self.told(known, verdict, attempt=-1)

    @precondition(lambda self: any(len(one.dispatches) > 1 for one in self.known.values()))
    @rule(data=st.data(), verdict=verdicts)
    def report_on_an_earlier_attempt(self, data: st.DataObject, verdict: str) -> None:
        again = [known for known in self.known.values() if len(known.dispatches) > 1]
        self.told(data.draw(st.sampled_from(again)), verdict, attempt=-2)

    def told(self, known: Known, verdict: str, *, attempt: int) -> None:
        if not known.dispatches:
            return
        fence = known.dispatches[attempt]["dispatch"]["fence"]
        is_current = known.state == "DISPATCHED" and attempt == -1
        answer = self.world.run(self.api.report(known.dispatches[attempt], verdict))
        if is_current:
            assert answer.status == 200, answer
            self.predict_report(known, verdict)
            # A report that does not settle the effect is not the last word of its worker.
            if verdict == "unknown" or known.state in ("SUCCEEDED", "FAILED"):
                known.reports[fence] = verdict
        elif known.reports.get(fence) == verdict:
            assert answer.status == 200, answer
        else:
            assert answer.refusal == (409, "fence_stale"), answer
            self.predict_late(known, verdict, len(known.dispatches) + 1 + attempt)

    @precondition(lambda self: self.any_in("RETRYABLE"))
    @rule(data=st.data(), verdict=verdicts, earlier=st.none() | verdicts)
    def try_again(self, data: st.DataObject, verdict: str, earlier: str | None) -> None:
        known = self.drawn(data, "RETRYABLE")
        answer = self.world.run(self.api.dispatch(known.effect))
        assert answer.code == self.dispatched(known, answer), answer
        if known.state == "DISPATCHED":
            if earlier:
                self.told(known, earlier, attempt=-2)
            self.told(known, verdict, attempt=-1)

    # --- time and the provider ----------------------------------------------------------------

    @rule(data=st.data())
    def run_out(self, data: st.DataObject) -> None:
        known = self.drawn(data, "UNKNOWN", "RETRYABLE")
        # Of what waits for another attempt, only a provider's key runs out.
        has_time = ("DISPATCHED", "UNKNOWN")
        if known.tool.effect_class == "IDEMPOTENT":
            has_time += ("RETRYABLE",)
        if known.state in has_time:
            self.world.run(self.world.owner.pass_time(known.effect, 5))
            known.is_due = True

    @precondition(lambda self: any(one.is_due for one in self.known.values()))
    @rule(answer=answers)
    def sweep(self, answer: Answer) -> None:
        self.world.source.answer = answer
        due = [known for known in self.known.values() if known.is_due]
        assert self.world.run(self.world.sweep.once()) == len(due)
        for known in due:
            if known.state == "UNKNOWN":
                self.predict_settlement(known, answer)
                if known.state == "UNKNOWN":
                    # No clock but the machine's own ends the back-off.
                    self.world.run(self.world.owner.put_off(known.effect))
            elif known.state == "RETRYABLE":
                known.becomes("QUARANTINED")
            elif known.tool.effect_class == "PURE":
                known.becomes("RETRYABLE")
            else:
                known.becomes("UNKNOWN", due=True)

    @precondition(lambda self: self.any_in("DISPATCHED"))
    @rule(data=st.data(), answer=answers, in_vain=st.booleans())
    def worker_dies(self, data: st.DataObject, answer: Answer, in_vain: bool) -> None:
        known = self.drawn(data, "DISPATCHED")
        self.world.run(self.world.owner.run_out(known.effect))
        known.is_due = True
        self.sweep(answer)
        if known.state == "UNKNOWN":
            if in_vain:
                self.world.run(self.world.owner.have_asked(known.effect, CHECKS_MAX - 1))
                known.is_spent = True
            self.sweep(answer)

    # --- people -------------------------------------------------------------------------------

    @rule(data=st.data(), to=resolutions)
    def resolve(self, data: st.DataObject, to: str) -> None:
        self.resolved(self.drawn(data, "QUARANTINED"), to)

    def is_contradicted(self, known: Known) -> bool:
        """Tell whether evidence speaks against another attempt."""
        against = {Answer.CONTRADICTS}
        if known.tool.effect_class == "REPLAYABLE":
            against |= {Answer.APPLIED}
        return any(answer in against for _, _, answer in known.evidence)

    def resolved(self, known: Known, to: str) -> None:
        answer = self.world.run(self.api.resolve(known.effect, to))
        if answer.status == 200 and answer.body["proposal"]:
            assert known.tool.effect_class in ONCE, answer
            answer = self.world.run(self.world.grace.resolve(known.effect, to))
        if not known.is_open:
            assert answer.code == "effect_conflict", answer
        elif known.state != "QUARANTINED":
            assert answer.code == "illegal_transition", answer
        elif to == "RETRYABLE" and (
            known.tool.effect_class in ONCE
            or known.attempts >= ATTEMPTS_MAX
            or known.tool.lifecycle == "RETIRED"
            or known.was_closed
            or self.is_contradicted(known)
        ):
            assert answer.code == "effect_not_retryable", answer
        else:
            assert answer.status == 200, answer
            known.becomes(to)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        known = self.drawn(data, "RETRYABLE")
        answer = self.world.run(self.api.cancel(known.effect))
        if known.state in ("PLANNED", "CANCELLED"):
            assert answer.status == 200, answer
            known.becomes("CANCELLED")
        elif known.state == "RETRYABLE":
            assert answer.status == 200, answer
            is_pure = known.tool.effect_class == "PURE"
            known.becomes("CANCELLED" if is_pure else "QUARANTINED")
        else:
            code = "illegal_transition" if known.is_open else "effect_conflict"
            assert answer.code == code, answer

    @precondition(lambda self: any(one.lifecycle == "RETIRED" for one in self.tools.values()))
    @rule(data=st.data(), to=resolutions)
    def queue_comes_late(self, data: st.DataObject, to: str) -> None:
        retired = [name for name, one in self.tools.items() if one.lifecycle == "RETIRED"]
        effect_class = data.draw(st.sampled_from(retired))
        number = 4 + len(self.known)
        self.planned(effect_class, number, asks=True, queued=True)
        self.resolved(self.known[effect_class, number], to)

    @rule(data=st.data(), step=st.sampled_from(STEPS))
    def operate(self, data: st.DataObject, step: str) -> None:
        tool = self.tools[data.draw(st.sampled_from(list(self.tools)))]
        getattr(self, step)(tool)

    def rotate(self, _: Tool) -> None:
        self.world.run(self.api.rotate(self.slot))
        self.credential += 1

    def attest(self, tool: Tool) -> None:
        path = f"/v1/contracts/{tool.reference['name']}/2.1/attest"
        assert self.ask("POST", path, {}).body["credential_version"] == self.credential
        tool.bound = self.credential

    def suspend(self, tool: Tool) -> None:
        """Suspend a version, or let one that is suspended run again."""
        tool.suspended = not tool.suspended
        name = tool.reference["name"]
        self.world.run(self.world.owner.suspend(name, "2.1.0", suspended=tool.suspended))

    def retire(self, tool: Tool) -> None:
        answer = self.world.run(self.api.retire(tool.reference))
        open_states = [one.state for one in self.known.values() if one.tool is tool and one.is_open]
        if tool.lifecycle == "RETIRED" or not open_states:
            assert answer.status == 200, answer
            tool.lifecycle = "RETIRED"
        else:
            assert answer.refusal == (409, "contract_in_use"), answer
            found = {one["state"]: one["count"] for one in answer.body["facts"]["blockers"]}
            assert found == {state: open_states.count(state) for state in open_states}
            tool.lifecycle = "MIGRATING"

    def rollback(self, tool: Tool) -> None:
        answer = self.world.run(self.api.rollback(tool.reference))
        if tool.lifecycle == "RETIRED":
            assert answer.refusal == (409, "contract_retired"), answer
        else:
            assert answer.status == 200, answer
            tool.lifecycle = "ACTIVE"

    # --- what is always true ------------------------------------------------------------------

    @invariant()
    def the_ledger_says_what_the_model_says(self) -> None:
        found = self.world.run(self.world.owner.check_ledger(self.run_name))
        assert found == {
            known.effect["effect_id"]: (State(known.state), known.attempts)
            for known in self.known.values()
        }

    def teardown(self) -> None:
        """Leave nothing that is due to the next example."""
        self.world.run(
            self.world.owner.rows("UPDATE effect_open SET due_at = due_at + interval '9 years'")
        )


async def opened(stack: AsyncExitStack, database_url: str, home: Path) -> tuple[Api, Owner, Api]:
    api = await stack.enter_async_context(running(database_url, home))
    api.app.state.lease_seconds_max = 0
    owner = await stack.enter_async_context(owning(database_url))
    grace = api.speaking_for(await owner.token("default", "operator", principal="grace"))
    await stack.enter_async_context(grace.http)
    return api, owner, grace


def test_whatever_happens_the_ledger_keeps_to_the_model(database_url: str, tmp_path: Path):
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        api, owner, grace = runner.run(opened(stack, database_url, tmp_path / "home"))
        try:
            source = Chosen()
            world = World(runner, api, owner, source, sweeper_of(api, source), grace)
            # Typed as a class, and called as one: what makes a machine will do.
            machine: Any = partial(EffectMachine, world)
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=50,
                    stateful_step_count=40,
                    deadline=None,
                    print_blob=True,
                    # A shrunk history is worth its time, an explained one is not.
                    phases=[one for one in Phase if one is not Phase.explain],
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(stack.aclose())

"""A worker: calls the provider for its share of the work, until all of it is closed.

    python -m tests.crash.worker FOLDER SEED SCHEDULE NUMBER

Where everything is, FOLDER/site.json says. What the worker was told, it writes into a journal of
its own; a worker that takes the place of a killed one reads all journals, and goes on with what no
journal calls closed. CRASH_CLOCK_SECONDS is by how much its clocks are off: the monotonic one from
the start, the wall clock from a step in the middle.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from heapq import heapify, heappop, heappush
from pathlib import Path
from random import Random
from threading import Lock
from typing import Final

import httpx

from ledger.state import CLOSED, State
from tallystick import (
    Client,
    Effect,
    EffectFailed,
    EffectNotOwned,
    NotSent,
    OutcomeUnreported,
    ToolReference,
)
from tallystick._wire import monotonic
from tallystick.errors import (
    ContractMigrating,
    ContractRetired,
    EffectConflict,
    EffectNotRetryable,
    FenceStale,
    LeaseExpired,
    MixedVersions,
    Outage,
    ToolSchemaDrift,
)
from tests.crash.catalogue import LEASE_SECONDS, SETTLE_SECONDS
from tests.crash.journal import Journal, read_journals
from tests.crash.network import Network
from tests.crash.site import Site
from tests.crash.work import Item, load, share_of

THREADS: Final = 4
ANSWER_SECONDS_MAX: Final = 5.0
AGAIN_SECONDS_MIN: Final = 0.5
AGAIN_SECONDS_MAX: Final = 1.0
CLOCK_STEPS_AFTER_SECONDS_MAX: Final = 5.0
CLOCK: Final = "CRASH_CLOCK_SECONDS"
FINAL: Final = CLOSED | {State.QUARANTINED}


class Unclear(Exception):
    """The provider's answer does not say how this effect went."""


EXPECTED: Final = (
    EffectNotRetryable,
    FenceStale,
    LeaseExpired,
    NotSent,
    Outage,
    OutcomeUnreported,
    Unclear,
    httpx.HTTPError,
)
"""What goes wrong in such a test. Anything else is a defect, and ends the worker."""


class Queue:
    """The work of one process, for its threads, each item with the time to begin it."""

    def __init__(self, items: Iterable[tuple[float, Item]]) -> None:
        self._waiting = list(items)
        heapify(self._waiting)
        self._lock = Lock()

    def take(self) -> tuple[float, Item] | None:
        """Return the next item, or None when nothing is left."""
        with self._lock:
            return heappop(self._waiting) if self._waiting else None

    def put_back(self, item: Item, not_before: float) -> None:
        with self._lock:
            heappush(self._waiting, (not_before, item))


class Worker:
    """What the threads of one process share."""

    def __init__(self, folder: Path, seed: int, schedule: int, number: int) -> None:
        self._journal = Journal(folder, f"worker-{number}")
        self._name = f"{seed}:{schedule}:{number}:{self._journal.generation}"
        self._site = Site.load(folder / "site.json")
        closed = {told["closed"] for told in read_journals(folder) if "closed" in told}
        mine = share_of(load(folder / "work.json"), number)
        self._queue = Queue(
            (self._site.began_at + item.begins_after, item)
            for item in mine
            if item.number not in closed
        )
        off = float(os.environ.get(CLOCK, "0"))
        if off:
            _step_the_wall_clock(off, Random(f"{self._name}:clock"))
            self._journal.note(fault="clock step")
        self._clients = {
            tenant: self._client(token, off) for tenant, token in self._site.tokens.items()
        }
        self._provider = httpx.Client(base_url=self._site.provider_url, trust_env=False)

    def _client(self, token: str, off: float) -> Client:
        network = Network(
            self._site.urls,
            Random(f"{self._name}:network"),
            lambda fault: self._journal.note(fault=f"network {fault}"),
        )
        return Client(
            self._site.urls[0],
            token,
            timeout_seconds=3,
            retry_seconds=3,
            transport=network,
            clock=lambda: monotonic() + off,
        )

    def work(self, thread: int) -> None:
        """Take items until none is left. What is not closed yet is tried again after a while."""
        random = Random(f"{self._name}:{thread}")
        while taken := self._queue.take():
            not_before, item = taken
            time.sleep(max(not_before - time.monotonic(), 0))
            if self._is_closed(item, random):
                self._journal.note(closed=item.number)
            else:
                pause = random.uniform(AGAIN_SECONDS_MIN, AGAIN_SECONDS_MAX)
                self._queue.put_back(item, time.monotonic() + pause)

    def _is_closed(self, item: Item, random: Random) -> bool:
        """Run an item, on the version that its run uses; return whether it is closed for good."""
        versions = self._site.references[item.tenant][item.tool]
        for reference in random.sample(versions, len(versions)):
            try:
                return self._run(item, reference, random)
            except (ContractMigrating, ContractRetired, MixedVersions, ToolSchemaDrift):
                # The version is on its way out, or the run or the effect has another one.
                continue
            except EffectNotOwned as refusal:
                self._journal.note(effect_id=refusal.effect_id)
                return refusal.state in FINAL
            except EXPECTED:
                return False
        assert item.facts.is_retired, f"no version of {item.tool} suits the run {item.run}"
        self._journal.note(refused=item.number)
        return True

    def _run(self, item: Item, reference: ToolReference, random: Random) -> bool:
        effect = self._effect(item, reference)
        try:
            with effect:
                if effect.recorded:
                    self._journal.note(effect_id=effect.effect_id)
                self._body(item, effect, random)
        except FenceStale:
            self._note_late_report(effect)
            raise
        if item.trouble == "calls_it_otherwise" and effect.recorded:
            self._call_otherwise(item, reference)
        with suppress(EffectFailed):
            effect.result()
        # A PURE call may have run without the registry: then it is made again, to be recorded.
        return effect.recorded

    def _effect(self, item: Item, reference: ToolReference) -> Effect:
        client, run, name = self._clients[item.tenant], item.run, item.effect
        if not item.plans_first:
            return client.effect(reference, item.arguments, run=run, effect=name)
        planned = client.plan(reference, item.arguments, run=run, effect=name)
        self._journal.note(effect_id=planned.effect_id)
        return client.dispatch(planned.effect_id)

    def _call_otherwise(self, item: Item, reference: ToolReference) -> None:
        """Ask for the same effect with other arguments, which has to be refused."""
        others = item.arguments | {"item": -1}
        with suppress(EffectConflict, Outage):
            taken = self._clients[item.tenant].plan(
                reference, others, run=item.run, effect=item.effect
            )
            self._journal.note(confused=taken.effect_id)

    def _note_late_report(self, effect: Effect) -> None:
        report, dispatch = effect._report, effect._dispatch
        assert report is not None
        assert dispatch is not None
        answers = {"succeeded": "applied", "failed": "rejected"}
        answer = "absent" if report.not_sent else answers.get(report.outcome)
        if answer is not None:
            self._journal.note(late=effect.effect_id, fence=dispatch.fence, answer=answer)

    def _body(self, item: Item, effect: Effect, random: Random) -> None:
        # The library keeps the fence to itself; this provider wants it, to be a judge.
        dispatch = effect._dispatch
        fence, attempt = (dispatch.fence, dispatch.attempt) if dispatch else (-1, 1)
        trouble, is_first = item.trouble, attempt == 1
        pause = partial(self._pause, trouble)
        if trouble == "does_not_send":
            raise NotSent("the item says so")
        if trouble == "vouches_after_its_lease" and is_first:
            pause(_beyond_settlement(random))
            raise NotSent("the item says so")
        if trouble == "pauses_before_send":
            pause(random.uniform(0, LEASE_SECONDS))
        headers = effect.headers()
        if trouble == "sends_after_its_lease" and is_first:
            # It looked at its clock, and then the machine stood still. No fence stops this one.
            pause(_beyond_settlement(random))
        method, path = item.facts.route
        told = {"Effect-Id": effect.effect_id, "Fence": str(fence)}
        if fault := item.fault(attempt, random):
            told["Fault"] = fault
        answer = self._provider.request(
            method,
            path,
            content=json.dumps(effect.arguments),
            headers=headers | told,
            # Who does not wait for a late booking asks the ledger to find out, and at once.
            timeout=random.uniform(0.05, 0.5) if trouble == "books_late" else ANSWER_SECONDS_MAX,
        )
        if trouble == "pauses_before_report" or (item.is_contested and not is_first):
            pause(random.uniform(0, LEASE_SECONDS))
        if trouble == "reports_after_its_lease" and is_first:
            pause(_beyond_settlement(random))
        if answer.status_code == 402:
            effect.failed("declined", "The provider declined.")
        else:
            reference = _reference(answer, effect, is_read=method == "GET")
            effect.succeeded({"reference": reference}, provider_reference=reference)

    def _pause(self, trouble: str, seconds: float) -> None:
        self._journal.note(fault=f"worker {trouble}")
        time.sleep(seconds)


def _reference(answer: httpx.Response, effect: Effect, *, is_read: bool) -> str:
    """Return what the provider calls what it did. Raises Unclear unless it says that it is done."""
    try:
        told = answer.raise_for_status().json()
    except ValueError as fault:
        raise Unclear("it is no JSON") from fault
    if is_read:
        return "none"
    if (told["effect_id"], told["status"]) != (effect.effect_id, "booked"):
        raise Unclear("it is about another effect, or not done yet")
    return told["reference"]


def _beyond_settlement(random: Random) -> float:
    """Return a time in which the lease runs out, the ledger settles, and others may try again."""
    return LEASE_SECONDS + SETTLE_SECONDS + random.uniform(0, 1.5)


def _step_the_wall_clock(off: float, random: Random) -> None:
    """Let this process's wall clock be off, from a moment on that is drawn."""
    true_time = time.time
    steps_at = true_time() + random.uniform(0, CLOCK_STEPS_AFTER_SECONDS_MAX)

    def stepped() -> float:
        now = true_time()
        return now + off if now >= steps_at else now

    time.time = stepped


def main(folder: str, *numbers: str) -> None:
    seed, schedule, number = map(int, numbers)
    worker = Worker(Path(folder), seed, schedule, number)
    with ThreadPoolExecutor(THREADS) as threads:
        for ended in [threads.submit(worker.work, thread) for thread in range(THREADS)]:
            ended.result()


if __name__ == "__main__":
    main(*sys.argv[1:])

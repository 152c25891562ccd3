"""A worker: calls the provider for its share of the work, until all of it is closed.

    python -m tests.crash.worker FOLDER SEED NUMBER GENERATION

The registry is where TALLYSTICK_URL and TALLYSTICK_TOKEN say. What the worker was told, it writes
into a journal of its own; a worker that takes the place of a killed one reads all journals, and
goes on with what no journal calls closed.
"""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Final

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
from tallystick.errors import (
    EffectNotRetryable,
    FenceStale,
    LeaseExpired,
    MixedVersions,
    Outage,
    ToolSchemaDrift,
)
from tests.crash.scenario import LEASE_SECONDS, SETTLE_SECONDS, Item, load, share_of

WORKERS: Final = 3
THREADS: Final = 4
ANSWER_SECONDS_MAX: Final = 5.0
AGAIN_SECONDS_MIN: Final = 0.5
AGAIN_SECONDS_MAX: Final = 1.0
FINAL: Final = CLOSED | {State.QUARANTINED}
ROUTES: Final = {
    "IDEMPOTENT": ("POST", "/invoices"),
    "NON_RETRYABLE": ("POST", "/transfers"),
    "REPLAYABLE": ("POST", "/messages"),
    "UNKNOWN": ("POST", "/notes"),
    "PURE": ("GET", "/customers/C-1"),
}
"""What the provider does once for a key, every time that it is asked, or never."""
EXPECTED: Final = (
    EffectNotRetryable,
    FenceStale,
    LeaseExpired,
    NotSent,
    Outage,
    OutcomeUnreported,
    httpx.HTTPError,
)
"""What goes wrong in such a test. Anything else is a defect, and ends the worker."""

References = dict[str, list[ToolReference]]


class Journal:
    """What one worker process was told, a line each; a kill leaves every whole line."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, **facts: Any) -> None:
        os.write(self._file, json.dumps(facts).encode() + b"\n")


def read_journals(folder: Path) -> Iterator[dict[str, Any]]:
    """Read what all workers were told."""
    for path in folder.glob("journal-*"):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


class Queue:
    """The work of one process, for its threads.

    What has to be tried again goes before what is new, once its time has come.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._new = deque(items)
        self._again: list[tuple[float, Item]] = []
        self._lock = Lock()

    def take(self) -> tuple[float, Item] | None:
        """Return the next item and the time to begin it, or None when nothing is left."""
        with self._lock:
            is_due = self._again and self._again[0][0] <= time.monotonic()
            if self._new and not is_due:
                return 0.0, self._new.popleft()
            if self._again:
                return heappop(self._again)
            return None

    def put_back(self, item: Item, not_before: float) -> None:
        with self._lock:
            heappush(self._again, (not_before, item))


class Worker:
    """What the threads of one process share."""

    def __init__(self, folder: Path, seed: int, number: int, generation: int) -> None:
        tools = json.loads((folder / "references.json").read_text())
        self._references: References = {
            tool: [ToolReference.from_json(one) for one in references]
            for tool, references in tools.items()
        }
        closed = {told["closed"] for told in read_journals(folder) if "closed" in told}
        mine = share_of(seed, load(folder / "work.json"), number, WORKERS)
        self._queue = Queue(item for item in mine if item.number not in closed)
        self._name = f"{seed}:{number}:{generation}"
        self._journal = Journal(folder / f"journal-{number}-{generation}")
        self._client = Client(timeout_seconds=3, retry_seconds=3)
        self._provider = httpx.Client(
            base_url=(folder / "provider.url").read_text(), trust_env=False
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
        versions = self._references[item.tool]
        for reference in random.sample(versions, len(versions)):
            try:
                return self._run(item, reference, random)
            except (MixedVersions, ToolSchemaDrift):
                continue  # the run, or the effect, is recorded with another version
            except EffectNotOwned as refusal:
                self._journal.note(effect_id=refusal.effect_id)
                return refusal.state in FINAL
            except EXPECTED:
                return False
        raise AssertionError(f"no version of {item.tool} suits the run {item.run}")

    def _run(self, item: Item, reference: ToolReference, random: Random) -> bool:
        effect = self._effect(item, reference)
        with effect:
            if effect.recorded:
                self._journal.note(effect_id=effect.effect_id)
            self._body(item, effect, random)
        with suppress(EffectFailed):
            effect.result()
        # A PURE call may have run without the registry: then it is made again, to be recorded.
        return effect.recorded

    def _effect(self, item: Item, reference: ToolReference) -> Effect:
        run, name, arguments = item.run, item.effect, item.arguments
        if not item.plans_first:
            return self._client.effect(reference, arguments, run=run, effect=name)
        planned = self._client.plan(reference, arguments, run=run, effect=name)
        self._journal.note(effect_id=planned.effect_id)
        return self._client.dispatch(planned.effect_id)

    def _body(self, item: Item, effect: Effect, random: Random) -> None:
        # The library keeps the fence to itself; this provider wants it, to be a judge.
        dispatch = effect._dispatch
        fence, attempt = (dispatch.fence, dispatch.attempt) if dispatch else (-1, 1)
        trouble, is_first = item.trouble, attempt == 1
        if trouble == "does_not_send":
            raise NotSent("the item says so")
        if trouble == "vouches_after_its_lease" and is_first:
            time.sleep(_beyond_settlement(random))
            raise NotSent("the item says so")
        if trouble == "pauses_before_send":
            time.sleep(random.uniform(0, LEASE_SECONDS))
        headers = effect.headers()
        if trouble == "sends_after_its_lease" and is_first and item.effect_class != "REPLAYABLE":
            # It looked at its clock, and then the machine stood still. No fence stops this one.
            time.sleep(_beyond_settlement(random))
        method, path = ROUTES[item.effect_class]
        told = {"Effect-Id": effect.effect_id, "Fence": str(fence)}
        if fault := item.fault(attempt, random):
            told["Fault"] = fault
        answer = self._provider.request(
            method,
            path,
            content=json.dumps(effect.arguments, sort_keys=True),
            headers=headers | told,
            # Who does not wait for a late booking asks the ledger to find out, and at once.
            timeout=random.uniform(0.05, 0.5) if trouble == "books_late" else ANSWER_SECONDS_MAX,
        )
        if trouble == "pauses_before_report" or (item.is_contested and not is_first):
            time.sleep(random.uniform(0, LEASE_SECONDS))
        if trouble == "reports_after_its_lease" and is_first:
            time.sleep(_beyond_settlement(random))
        if answer.status_code == 402:
            effect.failed("declined", "The provider declined.")
        else:
            reference = answer.raise_for_status().json().get("reference", "none")
            effect.succeeded({"reference": reference}, provider_reference=reference)


def _beyond_settlement(random: Random) -> float:
    """Return a time in which the lease runs out, the ledger settles, and others may try again."""
    return LEASE_SECONDS + SETTLE_SECONDS + random.uniform(0, 1.5)


def main(folder: str, seed: str, number: str, generation: str) -> None:
    worker = Worker(Path(folder), int(seed), int(number), int(generation))
    with ThreadPoolExecutor(THREADS) as threads:
        for ended in [threads.submit(worker.work, thread) for thread in range(THREADS)]:
            ended.result()


if __name__ == "__main__":
    main(*sys.argv[1:])

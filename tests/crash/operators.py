"""The operators: retire the old versions in the middle of the work, until they are let go.

    python -m tests.crash.operators FOLDER SEED SCHEDULE

What waits for a person on such a version stands in the way. They look into the provider's books,
and say what they see; what is not there may still come, and so they write it off.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx

from tests.crash.catalogue import FIRST, TOOLS, name_of
from tests.crash.journal import Journal
from tests.crash.network import Network
from tests.crash.site import Site

PAUSE_SECONDS: Final = 0.5
ANSWER_SECONDS_MAX: Final = 3.0


class Operators:
    """Two people with a token each."""

    def __init__(self, folder: Path, seed: int, schedule: int) -> None:
        self._site = Site.load(folder / "site.json")
        self._journal = Journal(folder, "operators")
        name = f"{seed}:{schedule}:operators:{self._journal.generation}"
        self._tools = [name_of(schedule, tool) for tool, facts in TOOLS.items() if facts.is_retired]
        self._provider = httpx.Client(
            base_url=self._site.provider_url, trust_env=False, timeout=ANSWER_SECONDS_MAX
        )
        self._people = [
            httpx.Client(
                base_url=self._site.urls[0],
                headers={"Authorization": f"Bearer {token}"},
                timeout=ANSWER_SECONDS_MAX,
                transport=Network(
                    self._site.urls,
                    Random(f"{name}:{number}:network"),
                    lambda fault: self._journal.note(fault=f"network {fault}"),
                ),
            )
            for number, token in enumerate(self._site.operators)
        ]

    def work(self) -> None:
        """Ask again and again, until every old version is retired."""
        time.sleep(max(self._site.retires_at - time.monotonic(), 0))
        left = list(self._tools)
        while left:
            # No answer, or one that says to come again: the next round does.
            with suppress(httpx.HTTPError):
                for tool in tuple(left):
                    if self._is_retired(tool):
                        left.remove(tool)
            time.sleep(PAUSE_SECONDS)

    def _is_retired(self, tool: str) -> bool:
        path = f"/v1/rollouts/{tool}/{FIRST}/retire"
        answer = self._people[0].post(path, json={"reason": "there is a newer version"})
        if answer.status_code == 409 and answer.json()["code"] == "contract_in_use":
            self._journal.note(blockers=answer.json()["facts"]["blockers"])
            for effect in self._quarantined(tool):
                self._decide(effect)
            return False
        answer.raise_for_status()
        self._journal.note(retired=tool)
        return True

    def _quarantined(self, tool: str) -> Iterator[dict[str, Any]]:
        query = {"tool": tool, "version": FIRST, "limit": 500}
        answer = self._people[0].get("/v1/quarantine", params=query)
        yield from answer.raise_for_status().json()["effects"]

    def _decide(self, effect: dict[str, Any]) -> None:
        books = self._provider.get("/books").raise_for_status().json()
        mine = [one for one in books["bookings"] if one["effect_id"] == effect["effect_id"]]
        is_booked = any(one["status"] == "booked" for one in mine)
        word = {
            "to": "SUCCEEDED" if is_booked else "ABANDONED",
            "reason": "its version is to be retired",
            "evidence": "the provider's books",
        }
        path = f"/v1/effects/{effect['effect_id']}/resolve"
        for person in self._people:
            # The first one's word may have been enough.
            answer = person.post(path, json=word)
            if answer.status_code != 409:
                answer.raise_for_status()


def main(folder: str, *numbers: str) -> None:
    seed, schedule = map(int, numbers)
    Operators(Path(folder), seed, schedule).work()


if __name__ == "__main__":
    main(*sys.argv[1:])

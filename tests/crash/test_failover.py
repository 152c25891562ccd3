"""The primary is killed under load, and its standby takes over: what was acknowledged is there.

Where nobody waits for a standby it is not, which shows that the test would find it.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
import psycopg
import pytest

from cli.demo.provider.books import Books
from ledger.state import CLOSED, State
from server.bootstrap import prepare
from server.home import admin_token_file, open_home, read_keys
from tests.crash.callers import Acknowledged, Callers, NoAnswerError, provider
from tests.crash.standby import Node, address_of, await_that, free_port, pair

ROOT: Final = Path(__file__).parents[2]
BEFORE: Final = 24
AFTER: Final = 12
"""How many successes are acknowledged before the primary is killed, and again after that."""
REASON: Final = "the database's timeline changed"


@dataclass
class Entry:
    """All that the ledger says of one effect that matters here."""

    effect_id: str
    effect_class: str
    state: str
    reference: str | None
    events: dict[int, str] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of the service, whichever database it has."""
    return open_home(tmp_path_factory.mktemp("failover") / "home")


@pytest.fixture(scope="module")
def model(home: Path) -> Node:
    """A server that is shut down, with a database that is ready for the service."""
    node = Node(home.parent / "model")
    try:
        node.make()
        prepare(node.url, home, read_keys(home / "keys.json"))
        node.shut_down()
    finally:
        node.kill()
    return node


@contextmanager
def serving(database_url: str, home: Path, provider_url: str) -> Iterator[Callers]:
    """Run the service on a database; gives its callers, with their tools published."""
    port = free_port()
    foreign = ("TALLYSTICK_", "DATABASE_URL")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    told = {
        "DATABASE_URL": database_url,
        "TALLYSTICK_HOME": str(home),
        "TALLYSTICK_SWEEP_SECONDS": "0.2",
        "TALLYSTICK_EVIDENCE_PRIVATE_HOSTS": provider_url.removeprefix("http://"),
    }
    with (home.parent / "server.log").open("ab") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "cli", "serve", "--port", str(port)],
            cwd=ROOT,
            env=kept | told,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        await_that(lambda: _is_ready(url))
        token = admin_token_file(home).read_text().strip()
        with closing(Callers(url, token, provider_url)) as callers:
            callers.publish()
            yield callers
        assert service.poll() is None, "the service goes on by itself"
    finally:
        service.kill()
        service.wait()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, timeout=1).is_success
    except httpx.TransportError:
        return False


# --- what holds -----------------------------------------------------------------------------------


def read_ledger(database_url: str) -> dict[str, Entry]:
    """Read every effect, as the database's owner."""
    named = "run_id::text || '.' || number"
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            f"""
            SELECT {named}, effect_class, coalesce(state, status), provider_reference
              FROM effect
              LEFT JOIN effect_open USING (run_id, number, effect_class)
              LEFT JOIN effect_outcome USING (run_id, number)
            """
        ).fetchall()
        found = {effect_id: Entry(effect_id, *facts) for effect_id, *facts in rows}
        for effect_id, fence, state, reason in connection.execute(
            f"SELECT {named}, fence, to_state, reason FROM event"
        ):
            found[effect_id].events[fence] = state
            found[effect_id].reasons.add(reason)
    return found


def missing(journal: Sequence[Acknowledged], ledger: dict[str, Entry]) -> list[Acknowledged]:
    """Return what was acknowledged, and is not in the ledger, or not any more."""
    return [
        one
        for one in journal
        if (entry := ledger.get(one.effect_id)) is None
        or entry.events.get(one.fence) != one.state
        or (one.state == State.SUCCEEDED and entry.state != one.state)
    ]


def disagreements(ledger: dict[str, Entry], books: Path) -> Iterator[str]:
    """Hold the ledger against what the provider has."""
    kept = Books(books)
    whole = kept.whole(now=float("inf"))
    kept.close()
    sent: Counter[str] = Counter()
    booked: dict[str, list[str]] = {effect_id: [] for effect_id in ledger}
    for request in whole["requests"]:
        if request["fence"] is None:  # who looks something up has none
            continue
        sent[request["effect_id"]] += 1
        entry = ledger.get(request["effect_id"])
        if entry is None or entry.events.get(request["fence"]) != State.DISPATCHED:
            yield f"sent without a dispatch: {request}"
    for booking in whole["bookings"]:
        booked.setdefault(booking["effect_id"], []).append(booking["reference"])
    for entry in ledger.values():
        references = booked[entry.effect_id]
        if entry.state == State.SUCCEEDED and entry.reference not in references:
            yield f"succeeded, and not booked: {entry}"
        if references and entry.state not in (State.SUCCEEDED, State.QUARANTINED):
            yield f"booked as {references}: {entry}"
        if len(references) > 1 and entry.effect_class != "REPLAYABLE":
            yield f"booked twice: {entry}"
        if sent[entry.effect_id] > 1 and entry.effect_class in ("NON_RETRYABLE", "UNKNOWN"):
            yield f"sent twice: {entry}"


# --- the tests ------------------------------------------------------------------------------------


def test_what_was_acknowledged_outlives_the_primary(home: Path, model: Node, tmp_path: Path):
    books = tmp_path / "books.sqlite"
    with (
        provider(books) as provider_url,
        pair(tmp_path, model, synchronous=True) as (primary, standby),
        serving(address_of(primary, standby), home, provider_url) as callers,
    ):
        with callers.at_work():
            await_that(lambda: callers.count("SUCCEEDED") >= BEFORE)
            # Their workers fall silent: one after it has sent, the other before.
            sent, unsent = silent = [callers.dispatch(-n, "NON_RETRYABLE") for n in (1, 2)]
            callers.send(sent)
            before = callers.count("SUCCEEDED")
            primary.kill()
            standby.promote()
            await_that(lambda: callers.count("SUCCEEDED") >= before + AFTER)
        await_that(lambda: settled(standby, callers))
        ledger = read_ledger(standby.url)
    assert not missing(callers.journal, ledger)
    assert not [*disagreements(ledger, books)]
    assert all(REASON in ledger[effect["effect_id"]].reasons for effect in silent)
    assert ledger[sent["effect_id"]].state == State.SUCCEEDED
    assert ledger[unsent["effect_id"]].state == State.QUARANTINED
    assert "the lease ran out" not in {why for one in ledger.values() for why in one.reasons}


def settled(primary: Node, callers: Callers) -> bool:
    """Take up what may be sent again; tell whether nothing is left to do.

    No worker is left, so that nobody has to wait for their leases.
    """
    primary.ask(
        """
        UPDATE effect_open SET unknown_since = now(), due_at = now()
         WHERE state = 'UNKNOWN' AND unknown_since > now()
        """,
        database="tallystick",
    )
    entries = read_ledger(primary.url).values()
    for entry in entries:
        if entry.state == State.RETRYABLE:
            effect = callers.dispatch_again(entry.effect_id)
            callers.report(effect, callers.send(effect))
    return all(State(entry.state) in CLOSED | {State.QUARANTINED} for entry in entries)


@pytest.mark.parametrize("synchronous", [True, False])
def test_what_the_standby_has_not_seen_is_lost_where_nobody_waited_for_it(
    home: Path, model: Node, tmp_path: Path, *, synchronous: bool
):
    with (
        provider(tmp_path / "books.sqlite") as provider_url,
        pair(tmp_path, model, synchronous=synchronous) as (primary, standby),
        serving(primary.url, home, provider_url) as callers,
    ):
        seen = callers.dispatch(0, "UNKNOWN")
        await_that(lambda: read_ledger(standby.url))
        standby.unfollow()
        if synchronous:
            callers.patience_seconds = 2
        with suppress(NoAnswerError):
            unseen = callers.dispatch(1, "IDEMPOTENT")
            callers.report(unseen, callers.send(unseen))
        primary.kill()
        standby.promote()
        ledger = read_ledger(standby.url)
    assert ledger.keys() == {seen["effect_id"]}
    states = [] if synchronous else ["DISPATCHED", "SUCCEEDED"]
    assert [one.state for one in missing(callers.journal, ledger)] == states
    assert [one.state for one in callers.journal] == ["DISPATCHED", *states]

"""A ledger that lost its tail: the provider tells what is missing, and nothing is sent twice."""

from pathlib import Path

from tests.api import running
from tests.bookings import Reverse, keeping_books, listed
from tests.conftest import NewDatabase, name_of
from tests.fixtures import owning, sweeper_of


async def test_a_standby_that_takes_over_finds_all_that_it_missed(
    new_database: NewDatabase, template_database: str, tmp_path: Path
):
    """It is a copy from before: what was sent later stands in the provider's books alone."""
    primary, home = new_database(template=template_database), tmp_path / "home"
    async with keeping_books() as bookings:
        async with running(primary, home) as api:
            reference, worker = await api.publish(listed()), api.worker_id
            planned = (await api.plan(reference, effect="planned")).body
            again = await api.dispatched(reference, effect="again")
            under_way = await api.dispatched(reference, effect="under way")
            async with owning(primary) as owner:
                await api.report(again, "unknown")
                for _ in range(2):  # the provider does not have it, and says so twice
                    await sweeper_of(api, bookings.source).once()
                    await owner.pass_time(again, 2)
                assert await api.state(again) == "RETRYABLE"
        standby = new_database(template=name_of(primary))
        async with running(primary, home) as api:
            api.worker_id = worker
            sent = {
                "planned": (await api.dispatch(planned)).body,
                "again": (await api.dispatch(again)).body,
                "under way": under_way,
                "same run": await api.dispatched(reference, effect="same run"),
                "other run": await api.dispatched(reference, run="run-2"),
            }
            for effect in sent.values():
                await bookings.send(effect)
                assert (await api.report(effect, "succeeded")).body["state"] == "SUCCEEDED"
        async with running(standby, home) as api, owning(standby) as owner:
            await Reverse(api, owner, bookings.source).again()
            sweeping = sweeper_of(api, bookings.source)
            assert {name: await api.state(effect) for name, effect in sent.items()} == {
                "planned": "QUARANTINED",
                "again": "UNKNOWN",
                "under way": "DISPATCHED",
                "same run": "QUARANTINED",
                "other run": "QUARANTINED",
            }
            for effect in (planned, again):
                assert not (await api.dispatch(effect)).body["dispatch"]["owned"]
            shown = {name: await api.show(effect) for name, effect in sent.items()}
            assert [one["transition"] for one in shown["planned"]["events"]] == ["T1", "T9", "T12"]
            assert (shown["same run"]["run"], shown["other run"]["run"]) == ("run-1", None)
            # What is recorded settles by itself; people decide of the rest.
            await owner.run_out(under_way)
            for _ in range(2):
                await sweeping.once()
            for name in ("again", "under way"):
                assert await api.state(sent[name]) == "SUCCEEDED"
            causes = (await api.ask("GET", "/v1/quarantine")).body["effects"]
            assert sorted(one["cause"] for one in causes) == ["contradicted", "orphan", "orphan"]
            for one in causes:
                assert (await api.resolve(one, "SUCCEEDED")).body["state"] == "SUCCEEDED"
            await api.check_histories()
            await owner.check_ledger()
        assert sorted(await bookings.booked()) == sorted(one["effect_id"] for one in sent.values())

"""The reference provider keeps its word, and breaks it when it is told to."""

import hmac
import json
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from cli.demo.provider.__main__ import listening, server_of
from cli.demo.provider.books import Books
from cli.demo.provider.faults import FITTING, Fault, Place, Plan, Rule, Schedule

ARGUMENTS = {"customer_id": "C-1", "amount_cents": 5}
SECRET = "whsec_" + b64encode(b"for this test alone").decode()
WAIT_SECONDS_MAX = 20


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return tmp_path / "books.sqlite"


@pytest.fixture
def provider(books: Path) -> Iterator[httpx.Client]:
    with listening(0) as listener:
        server = server_of(books, Plan())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=url, trust_env=False, timeout=WAIT_SECONDS_MAX) as http:
            yield http
        server.should_exit = True
        thread.join()


def post(
    provider: httpx.Client, kind: str, body: Any = ARGUMENTS, **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return provider.post(f"/{kind}", json=body, headers=named)


def booked(provider: httpx.Client) -> list[Any]:
    return provider.get("/books").json()["bookings"]


def set_plan(provider: httpx.Client, **plan: Any) -> None:
    provider.put("/plan", json=plan).raise_for_status()


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- keys -----------------------------------------------------------------------------------------


def test_the_same_key_with_the_same_body_is_the_same_booking(provider: httpx.Client):
    first = post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1")
    again = post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert len(booked(provider)) == 1
    assert len(provider.get("/books").json()["requests"]) == 2


def test_the_same_key_with_another_body_is_refused(provider: httpx.Client):
    post(provider, "invoices", Idempotency_Key="k-1")
    refused = post(provider, "invoices", {"amount_cents": 6}, Idempotency_Key="k-1")
    assert refused.status_code == 422
    assert [booking["body"] for booking in booked(provider)] == [ARGUMENTS]


def test_a_key_whose_first_request_is_under_way_has_to_wait(provider: httpx.Client):
    late = {"Idempotency_Key": "k-1", "Fault": "accepts_late=1"}
    thread = threading.Thread(target=post, args=(provider, "invoices"), kwargs=late)
    thread.start()
    eventually(lambda: len(provider.get("/books").json()["requests"]) == 1)
    refused = post(provider, "invoices", Idempotency_Key="k-1")
    thread.join()
    assert (refused.status_code, refused.json()) == (409, {"error": "key_in_progress"})
    assert post(provider, "invoices", Idempotency_Key="k-1").status_code == 200
    assert len(booked(provider)) == 1


def test_what_honours_keys_asks_for_one(provider: httpx.Client):
    assert post(provider, "invoices").status_code == 400
    assert booked(provider) == []


def test_what_honours_no_keys_books_every_request(provider: httpx.Client):
    for _ in range(2):
        post(provider, "transfers", Idempotency_Key="k-1", Effect_Id="e-1")
    assert len(booked(provider)) == 2


def test_a_key_is_forgotten_after_its_retention(provider: httpx.Client):
    set_plan(provider, retention_seconds=0)
    for _ in range(2):
        assert post(provider, "invoices", Idempotency_Key="k-1").status_code == 201
    assert provider.get("/keys/k-1").status_code == 404


def test_a_cancelled_key_books_nothing_any_more(provider: httpx.Client):
    assert provider.post("/keys/k-1/cancel").json()["status"] == "cancelled"
    assert post(provider, "invoices", Idempotency_Key="k-1").status_code == 410
    assert provider.get("/keys/k-1").json()["status"] == "cancelled"
    assert [one["status"] for one in booked(provider)] == ["cancelled"]


def test_what_is_pending_can_be_cancelled_and_what_is_booked_cannot(provider: httpx.Client):
    post(provider, "invoices", Idempotency_Key="slow", Fault="settles_late=600")
    assert provider.post("/keys/slow/cancel").json()["status"] == "cancelled"
    post(provider, "invoices", Idempotency_Key="fast")
    refused = provider.post("/keys/fast/cancel")
    assert (refused.status_code, refused.json()["status"]) == (409, "booked")


# --- looking up -----------------------------------------------------------------------------------


def test_a_booking_is_found_by_effect_by_key_and_by_its_own_name(provider: httpx.Client):
    made = post(provider, "invoices", Idempotency_Key="k/1", Effect_Id="e.1").json()
    assert provider.get("/effects/e.1").json() == made
    assert provider.get("/keys/k%2F1").json() == made
    assert provider.get(f"/bookings/{made['reference']}").json() == made
    assert made["status"] == "booked"
    assert made["body"] == ARGUMENTS


def test_only_a_look_up_says_not_found(provider: httpx.Client):
    for path in ("/effects/e-2", "/keys/k-2", "/bookings/invoice-0007"):
        assert provider.get(path).status_code == 404
    assert provider.get("/efects/e-2").status_code == 400, "a wrong address is no evidence"
    assert post(provider, "gifts").status_code == 400


def test_a_reverse_sweep_reads_all_of_it_in_pages(provider: httpx.Client):
    for _ in range(3):
        post(provider, "transfers")
    first = provider.get("/bookings", params={"limit": 2}).json()
    rest = provider.get("/bookings", params={"limit": 2, "after": first["next"]}).json()
    numbers = [one["number"] for page in (first, rest) for one in page["bookings"]]
    last = provider.get("/bookings", params={"since": rest["bookings"][-1]["at"]}).json()
    assert [one["number"] for one in last["bookings"]] == numbers[-1:]
    assert (numbers, rest["next"]) == ([1, 2, 3], None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"'])
def test_what_is_no_object_is_not_booked(provider: httpx.Client, content: bytes):
    assert provider.post("/transfers", content=content).status_code == 400
    assert booked(provider) == []


def test_the_books_have_every_request_with_its_digest(provider: httpx.Client):
    content = json.dumps(ARGUMENTS).encode()
    provider.post("/transfers", content=content, headers={"Effect-Id": "e-1", "Fence": "3"})
    provider.get("/effects/e-1")
    sent, asked = provider.get("/books").json()["requests"]
    assert sent["digest"] == f"sha256:{sha256(content).hexdigest()}"
    assert (sent["effect_id"], sent["fence"], sent["status"]) == ("e-1", 3, 201)
    assert (asked["method"], asked["path"], asked["status"]) == ("GET", "/effects/e-1", 200)


def test_the_books_outlive_the_provider(provider: httpx.Client, books: Path):
    made = post(provider, "transfers", Effect_Id="e-1").json()
    reader = Books(books)
    assert reader.by_effect("e-1", as_of=time.time()) == made
    reader.close()


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status", "statuses"),
    [
        ("down", 503, []),
        ("rate_limited", 429, []),
        ("loses_the_request", None, []),
        ("loses_the_answer", None, ["booked"]),
        ("breaks", 500, ["booked"]),
        ("is_malformed", 200, ["booked"]),
        ("is_foreign", 200, ["booked"]),
        ("declines", 402, ["declined"]),
        ("declines=600", 202, ["pending"]),
        ("settles_late=600", 202, ["pending"]),
        ("accepts_late=0.01", 201, ["booked"]),
        ("answers_late=0.01", 201, ["booked"]),
    ],
)
def test_a_fault_is_what_its_name_says(
    provider: httpx.Client, fault: str, status: int | None, statuses: list[str]
):
    try:
        answer = post(provider, "transfers", Effect_Id="e-1", Fault=fault).status_code
    except httpx.RemoteProtocolError:
        answer = None
    whole = provider.get("/books").json()
    assert answer == status
    assert [one["status"] for one in whole["bookings"]] == statuses
    (request,) = whole["requests"]
    assert (request["fault"], request["status"]) == (fault.partition("=")[0], status)


def test_a_foreign_answer_is_about_something_else_and_a_malformed_one_is_no_json(
    provider: httpx.Client,
):
    post(provider, "transfers", Effect_Id="e-1")
    foreign = provider.get("/effects/e-1", headers={"Fault": "is_foreign"}).json()
    assert foreign["effect_id"] != "e-1"
    malformed = provider.get("/effects/e-1", headers={"Fault": "is_malformed"})
    with pytest.raises(ValueError, match="Expecting value"):
        malformed.json()


def test_look_ups_that_lag_show_the_past_and_the_judge_the_present(provider: httpx.Client):
    set_plan(provider, lag_seconds=600)
    post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1")
    assert provider.get("/keys/k-1").status_code == 404
    assert provider.get("/effects/e-1").status_code == 404
    assert provider.get("/bookings").json()["bookings"] == []
    assert len(booked(provider)) == 1
    set_plan(provider)
    assert provider.get("/keys/k-1").status_code == 200
    assert provider.get("/keys/k-1", headers={"Fault": "is_stale=600"}).status_code == 404


def test_a_plan_strikes_as_often_as_it_says(provider: httpx.Client):
    set_plan(provider, faults=[{"fault": "down", "times": 1}])
    assert [post(provider, "transfers").status_code for _ in range(2)] == [503, 201]


@pytest.mark.parametrize("header", ["earthquake", "is_stale=1", "down=soon", "down=-1"])
def test_a_fault_that_there_is_not_is_refused(provider: httpx.Client, header: str):
    assert post(provider, "transfers", Fault=header).status_code == 400
    assert booked(provider) == []


def test_the_same_seed_gives_the_same_faults():
    def drawn(seed: int) -> list[Fault | None]:
        rules = (Rule(fault=Fault.DOWN, share=0.3), Rule(fault=Fault.BREAKS, share=0.3))
        schedule = Schedule(Plan(seed=seed, faults=rules))
        return [schedule.draw(Place.ORDERS, number).fault for number in range(100)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert set(drawn(1)) == {Fault.DOWN, Fault.BREAKS, None}


def test_every_fault_fits_somewhere_and_nowhere_else():
    assert frozenset().union(*FITTING.values()) == set(Fault)
    with pytest.raises(ValidationError, match="does not happen to webhooks"):
        Rule(fault=Fault.DOWN, on=Place.WEBHOOKS)


# --- webhooks -------------------------------------------------------------------------------------


@contextmanager
def subscriber(statuses: list[int]) -> Iterator[tuple[str, list[tuple[Any, bytes]]]]:
    """Take webhooks, the first ones with these statuses, and give the address and what came."""
    taken: list[tuple[Any, bytes]] = []

    class Desk(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.headers, content))
            self.send_response(statuses[len(taken) - 1] if len(taken) <= len(statuses) else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Desk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", taken
        server.shutdown()
        thread.join()


def is_genuine(headers: Any, content: bytes) -> bool:
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + content
    key = b64decode(SECRET.removeprefix("whsec_"))
    wanted = b64encode(hmac.new(key, signed, sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{wanted}"


def test_a_booking_is_told_of_until_it_is_taken_and_signed(provider: httpx.Client):
    with subscriber([503]) as (url, taken):
        set_plan(provider, webhook={"url": url, "secret": SECRET})
        made = post(provider, "invoices", Idempotency_Key="k-1", Effect_Id="e-1").json()
        eventually(lambda: len(taken) == 2)
    assert json.loads(taken[1][1])["type"] == "invoice.booked"
    assert json.loads(taken[1][1])["data"] == made
    assert all(is_genuine(headers, content) for headers, content in taken)
    assert len({headers["webhook-id"] for headers, _ in taken}) == 1
    statuses = [one["status"] for one in provider.get("/books").json()["deliveries"]]
    assert statuses == [503, 204]


@pytest.mark.parametrize(
    ("fault", "times", "genuine"), [("tells_twice", 2, True), ("is_forged", 1, False)]
)
def test_webhooks_come_twice_or_forged(
    provider: httpx.Client, fault: str, times: int, genuine: bool
):
    with subscriber([]) as (url, taken):
        rule = {"fault": fault, "on": "webhooks"}
        set_plan(provider, webhook={"url": url, "secret": SECRET}, faults=[rule])
        post(provider, "transfers")
        eventually(lambda: len(provider.get("/books").json()["deliveries"]) == times)
    assert [is_genuine(*one) for one in taken] == [genuine] * times


def test_what_settles_later_is_told_of_once_it_has(provider: httpx.Client):
    with subscriber([]) as (url, taken):
        set_plan(provider, webhook={"url": url, "secret": SECRET})
        post(provider, "invoices", Idempotency_Key="k-1", Fault="declines=0.1")
        post(provider, "invoices", Idempotency_Key="k-1")
        eventually(lambda: len(taken) == 1)
    assert json.loads(taken[0][1])["type"] == "invoice.declined"

"""The airline's store of one task.

Derived from the gold calls of the task:

- The customer is the `user_id` that they name, else one named after the task, and has the payment
  methods that they name, and one travel certificate that they do not.
- The reservations that they name are the customer's, each in economy, the class in which both the
  flights and the class may change, with the flights that they give it first, as many passengers as
  they give it, and no bags.
- A reservation is old. It is insured if they cancel it: of the grounds for that, insurance alone
  asks nothing of the rest.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from tallystick.canonical import Json
from tests.conformance.tau.corpus import GoldCall, Task
from tests.conformance.tau.world import STRANGER, Look, World, calls_about, found, named

CERTIFICATE: Final = "certificate_0000000"
"""The payment method that the task does not name."""


class Airline(World):
    """A world of one customer with reservations."""

    others: ClassVar = {"user_id": STRANGER, "reservation_id": "AAAAAA"}

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.user_id: str = next(iter(named(task, "user_id")), f"customer_of_{task.id}")
        booked = [payment for each in named(task, "payment_methods") for payment in each]
        methods = [each["payment_id"] for each in booked] + named(task, "payment_id")
        self.users: dict[str, Any] = {
            self.user_id: {
                "user_id": self.user_id,
                "payment_methods": {each: {"id": each} for each in [*methods, CERTIFICATE]},
            },
            STRANGER: {"user_id": STRANGER},
        }
        self.reservations: dict[str, dict[str, Any]] = {
            each: self._reservation(each) for each in named(task, "reservation_id")
        }
        self.reservations["AAAAAA"] = {"user_id": STRANGER}

    @property
    def subject(self) -> dict[str, Json]:
        return {"user_id": self.user_id}

    def _owner(self, kind: str, identifier: str) -> str | None:
        thing = {"user": self.users, "reservation": self.reservations}[kind].get(identifier)
        return thing["user_id"] if thing else None

    def named_by(self, call: GoldCall) -> dict[str, Any]:
        return self.reservations[str(call.arguments["reservation_id"])]

    def look_elsewhere(self, call: GoldCall) -> Look:
        self.reservations["ZZZZZZ"] = {**self.named_by(call), "reservation_id": "ZZZZZZ"}
        return "get_reservation_details", {"reservation_id": "ZZZZZZ"}

    def looks_before(self, call: GoldCall) -> Iterator[Look]:
        if {"payment_id", "user_id"} & call.arguments.keys():
            yield "get_user_details", {"user_id": self.user_id}
        if "reservation_id" in call.arguments:
            yield "get_reservation_details", {"reservation_id": call.arguments["reservation_id"]}

    def get_user_details(self, user_id: str) -> Json:
        return found(self.users, user_id, "user_not_found")

    def get_reservation_details(self, reservation_id: str) -> Json:
        return found(self.reservations, reservation_id, "reservation_not_found")

    def search_direct_flight(self, **_: Json) -> Json:
        return []

    def book_reservation(self, **booked: Json) -> Json:
        return booked

    def cancel_reservation(self, reservation_id: str) -> Json:
        return self.reservations[reservation_id]

    def update_reservation_flights(self, reservation_id: str, **changed: Json) -> Json:
        return self._change(reservation_id, **changed)

    def update_reservation_passengers(self, reservation_id: str, **changed: Json) -> Json:
        return self._change(reservation_id, **changed)

    def update_reservation_baggages(self, reservation_id: str, **changed: Json) -> Json:
        return self._change(reservation_id, **changed)

    def _reservation(self, reservation_id: str) -> dict[str, Any]:
        about = calls_about(self.task, "reservation_id", reservation_id)
        given: dict[str, Any] = {}
        for call in reversed(about):
            given |= call.arguments
        is_cancelled = any(call.tool == "cancel_reservation" for call in about)
        return {
            "reservation_id": reservation_id,
            "user_id": self.user_id,
            "cabin": "economy",
            "flights": given.get("flights", []),
            "passengers": [{"first_name": "A"}] * len(given.get("passengers", ["one"])),
            "total_baggages": 0,
            "nonfree_baggages": 0,
            "insurance": "yes" if is_cancelled else "no",
            "created_at": "2024-05-01T00:00:00",
        }

    def _change(self, reservation_id: str, **changed: Json) -> Json:
        self.reservations[reservation_id] |= changed
        return self.reservations[reservation_id]

"""The retail store of one task.

Derived from the gold calls of the task:

- The customer is the `user_id` that they name, else one named after the task, and has the payment
  methods that they name, and one more that they do not.
- Of several attempts to find the customer, the last finds it; without one, the customer's email.
- The orders that they name are the customer's, apart from ids that have not the form which the
  tools describe (`#W0000000`): those do not exist.
- An order is pending or delivered, as the name of the last tool says that changes it; an order that
  is only looked at is processed.
- Its items are those that are changed. It was paid with the method that its items are changed with,
  else with the one more.
- Which product a new item belongs to, the calls do not say: each product that the task looks up has
  all of them as variants, and where it looks up none, one product that is named after the order.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from tallystick.canonical import Json
from tests.conformance.tau.corpus import GoldCall, Task
from tests.conformance.tau.world import STRANGER, Look, NotThere, World, calls_about, found, named

SPARE: Final = "paypal_0000000"
"""The payment method that the task does not name."""

_ORDER_ID: Final = re.compile(r"#W[0-9]{7}")
_STATES: Final = ("pending", "delivered")


class Retail(World):
    """A world of one customer with orders."""

    others: ClassVar = {"user_id": STRANGER, "order_id": "#W0000000"}

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.user_id: str = next(iter(named(task, "user_id")), f"customer_of_{task.id}")
        methods = [*named(task, "payment_method_id"), SPARE]
        self.users: dict[str, Any] = {
            self.user_id: {
                "user_id": self.user_id,
                "payment_methods": {each: {"id": each} for each in methods},
            },
            STRANGER: {"user_id": STRANGER},
        }
        self.orders: dict[str, dict[str, Any]] = {
            each: self._order(each) for each in named(task, "order_id") if _ORDER_ID.fullmatch(each)
        }
        self.orders["#W0000000"] = {"user_id": STRANGER}
        attempts = [call for call in task.calls if call.tool.startswith("find_user_id_by_")]
        self._attempt: Look = (
            (attempts[-1].tool, attempts[-1].arguments)
            if attempts
            else ("find_user_id_by_email", {"email": f"{self.user_id}@example.com"})
        )

    @property
    def subject(self) -> dict[str, Json]:
        return {"user_id": self.user_id}

    def _owner(self, kind: str, identifier: str) -> str | None:
        thing = {"user": self.users, "order": self.orders}[kind].get(identifier)
        return thing["user_id"] if thing else None

    def named_by(self, call: GoldCall) -> dict[str, Any]:
        return self.orders[str(call.arguments["order_id"])]

    def look_elsewhere(self, call: GoldCall) -> Look:
        self.orders["#W9999999"] = {**self.named_by(call), "order_id": "#W9999999"}
        return "get_order_details", {"order_id": "#W9999999"}

    def looks_before(self, call: GoldCall) -> Iterator[Look]:
        arguments: dict[str, Any] = call.arguments
        if {"payment_method_id", "user_id"} & arguments.keys():
            yield self._attempt
            yield "get_user_details", {"user_id": self.user_id}
        if "order_id" in arguments:
            yield "get_order_details", {"order_id": arguments["order_id"]}
        if "new_item_ids" in arguments:
            for product in self._products(arguments["order_id"]):
                yield "get_product_details", {"product_id": product}

    def find_user_id_by_email(self, **asked: Json) -> Json:
        return self._find(asked)

    def find_user_id_by_name_zip(self, **asked: Json) -> Json:
        return self._find(asked)

    def get_user_details(self, user_id: str) -> Json:
        return found(self.users, user_id, "user_not_found")

    def get_order_details(self, order_id: str) -> Json:
        return found(self.orders, order_id, "order_not_found")

    def get_product_details(self, product_id: str) -> Json:
        items = {item for each in named(self.task, "new_item_ids") for item in each}
        variants: dict[str, Json] = {item: {"item_id": item} for item in sorted(items)}
        return {"product_id": product_id, "variants": variants}

    def cancel_pending_order(self, order_id: str, reason: str) -> Json:
        return self._change(order_id, status="cancelled")

    def modify_pending_order_items(self, order_id: str, **_: Json) -> Json:
        return self._change(order_id, status="pending (item modified)")

    def return_delivered_order_items(self, order_id: str, **_: Json) -> Json:
        return self._change(order_id, status="return requested")

    def exchange_delivered_order_items(self, order_id: str, **_: Json) -> Json:
        return self._change(order_id, status="exchange requested")

    def modify_pending_order_address(self, order_id: str, **address: Json) -> Json:
        return self._change(order_id, address=address)

    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Json:
        return self._change(order_id, payment_history=[{"payment_method_id": payment_method_id}])

    def modify_user_address(self, user_id: str, **address: Json) -> Json:
        self.users[user_id]["address"] = address
        return self.users[user_id]

    def _order(self, order_id: str) -> dict[str, Any]:
        about = calls_about(self.task, "order_id", order_id)
        sent: list[dict[str, Any]] = [call.arguments for call in about]
        changes = [each for each in sent if "item_ids" in each]
        words = [word for call in about for word in call.tool.split("_") if word in _STATES]
        return {
            "order_id": order_id,
            "user_id": self.user_id,
            "status": words[-1] if words else "processed",
            "items": [{"item_id": item} for change in changes for item in change["item_ids"]],
            "payment_history": [
                {"payment_method_id": each["payment_method_id"]} for each in changes
            ]
            or [{"payment_method_id": SPARE}],
        }

    def _products(self, order_id: str) -> list[str]:
        return named(self.task, "product_id") or [f"product of {order_id}"]

    def _find(self, asked: dict[str, Json]) -> Json:
        if asked != self._attempt[1]:
            raise NotThere("user_not_found")
        return self.user_id

    def _change(self, order_id: str, **changed: Json) -> Json:
        self.orders[order_id] |= changed
        return self.orders[order_id]

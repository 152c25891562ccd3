"""Calls that are wrong because of what stands in the store, or of what came before in the run.

Each says which rule of the policy has to stop it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.tau.airline import CERTIFICATE
from tests.conformance.tau.corpus import GoldCall
from tests.conformance.tau.mutations import BLOCKED, EXHAUSTED, NEEDS_HUMAN, NOT_RETURNED, Stop
from tests.conformance.tau.retail import SPARE


@dataclass(frozen=True, slots=True)
class Twist:
    """A right call in a world, or with arguments, that make it wrong.

    Args:
        kind: What was changed.
        rule: The part of the policy that has to stop it.
        changes: What of the object that the call names is otherwise, in the store.
        arguments: What is sent.
        stop: How it has to end.
    """

    kind: str
    rule: str
    changes: dict[str, Any]
    arguments: dict[str, Any]
    stop: Stop = BLOCKED


def _state(rule: str, *, stop: Stop = BLOCKED, **changes: Any) -> Callable[[Any], list[Twist]]:
    return lambda sent: [Twist("wrong state", rule, changes, sent, stop)]


def _one_for_one(rule: str) -> Callable[[Any], list[Twist]]:
    return lambda sent: [
        Twist("items left over", rule, {}, {**sent, "new_item_ids": sent["new_item_ids"][1:]})
    ]


def _refund(sent: Any) -> list[Twist]:
    if sent["payment_method_id"].startswith("gift_card"):
        return []
    twisted = {**sent, "payment_method_id": SPARE}
    return [Twist("wrong payment", "refund-where-it-came-from", {}, twisted)]


def _same_payment(sent: Any) -> list[Twist]:
    return [Twist("wrong payment", "payment-must-change", {}, {**sent, "payment_method_id": SPARE})]


def _other_flights(sent: Any) -> list[Twist]:
    first, *rest = sent["flights"]
    return [
        Twist(
            "flights of basic economy",
            rule,
            {"cabin": "basic_economy", "flights": sent["flights"]},
            {**sent, "flights": [{**first, name: other}, *rest]},
        )
        for rule, name, other in (
            ("basic-economy-keeps-its-flights", "flight_number", "HAT999"),
            ("basic-economy-keeps-its-dates", "date", "2024-05-31"),
        )
    ]


def _certificate(sent: Any) -> list[Twist]:
    rule = "no-certificate-for-a-change"
    return [Twist("wrong payment", rule, {}, {**sent, "payment_id": CERTIFICATE})]


def _unpaid_bags(rule: str) -> Callable[[Any], list[Twist]]:
    return lambda sent: [
        Twist("wrong bags", rule, {}, {**sent, "nonfree_baggages": sent["total_baggages"] + 1})
    ]


def _passengers(rule: str, more: int) -> Callable[[Any], list[Twist]]:
    return lambda sent: [
        Twist("wrong passengers", rule, {}, {**sent, "passengers": sent["passengers"] * more})
    ]


_TWISTS: Final[dict[str, tuple[Callable[[Any], list[Twist]], ...]]] = {
    "cancel_pending_order": (_state("change-only-pending", status="processed"),),
    "modify_pending_order_address": (_state("change-only-pending", status="processed"),),
    "modify_pending_order_payment": (
        _state("change-only-pending", status="processed"),
        _same_payment,
    ),
    "modify_pending_order_items": (
        _state("change-only-pending", status="processed"),
        _one_for_one("one-for-one"),
    ),
    "return_delivered_order_items": (
        _state("change-only-delivered", status="pending"),
        _refund,
    ),
    "exchange_delivered_order_items": (
        _state("change-only-delivered", status="pending"),
        _one_for_one("one-for-one"),
    ),
    "update_reservation_flights": (_other_flights, _certificate),
    "update_reservation_baggages": (
        _state("bags-are-added-only", total_baggages=9),
        _unpaid_bags("bags-paid-for"),
    ),
    "update_reservation_passengers": (_passengers("as-many-passengers-as-booked", 2),),
    "cancel_reservation": (
        _state("cancel-what-can-be-cancelled", insurance="no", stop=NEEDS_HUMAN),
    ),
    "book_reservation": (
        _passengers("five-passengers-at-most", 6),
        _unpaid_bags("bags-paid-for"),
    ),
    "enable_roaming": (_state("roaming-only-where-it-is-off", roaming_enabled=True),),
    "resume_line": (_state("resume-only-suspended", status="Active"),),
    "send_payment_request": (_state("ask-only-for-what-is-overdue", status="Paid"),),
    "refuel_data": (
        lambda sent: [
            Twist("too much", "budgets.limits.gigabytes", {}, {**sent, "gb_amount": 2.5}, EXHAUSTED)
        ],
    ),
}


def twists(call: GoldCall) -> Iterator[Twist]:
    """Yield what makes a call wrong."""
    for twist in _TWISTS.get(call.tool, ()):
        yield from twist(call.arguments)


WITHOUT: Final[dict[tuple[str, str], tuple[Stop, str | None]]] = {
    ("cancel_pending_order", "get_order_details"): (BLOCKED, "change-only-pending"),
    ("modify_pending_order_address", "get_order_details"): (BLOCKED, "change-only-pending"),
    ("modify_pending_order_payment", "get_order_details"): (BLOCKED, "change-only-pending"),
    ("modify_pending_order_payment", "get_user_details"): (NOT_RETURNED, None),
    ("modify_pending_order_items", "get_order_details"): (NOT_RETURNED, None),
    ("modify_pending_order_items", "get_product_details"): (NOT_RETURNED, None),
    ("return_delivered_order_items", "get_order_details"): (NOT_RETURNED, None),
    ("exchange_delivered_order_items", "get_order_details"): (NOT_RETURNED, None),
    ("exchange_delivered_order_items", "get_product_details"): (NOT_RETURNED, None),
    ("modify_user_address", "get_user_details"): (BLOCKED, "look-at-the-user-first"),
    ("book_reservation", "get_user_details"): (NOT_RETURNED, None),
    ("update_reservation_flights", "get_user_details"): (NOT_RETURNED, None),
    ("update_reservation_flights", "get_reservation_details"): (
        BLOCKED,
        "look-first",
    ),
    ("update_reservation_baggages", "get_user_details"): (NOT_RETURNED, None),
    ("update_reservation_baggages", "get_reservation_details"): (BLOCKED, "bags-are-added-only"),
    ("update_reservation_passengers", "get_reservation_details"): (
        BLOCKED,
        "as-many-passengers-as-booked",
    ),
    ("cancel_reservation", "get_reservation_details"): (BLOCKED, "look-first"),
    ("enable_roaming", "get_customer_by_phone"): (NOT_RETURNED, None),
    ("enable_roaming", "get_details_by_id"): (BLOCKED, "roaming-only-where-it-is-off"),
    ("resume_line", "get_customer_by_phone"): (NOT_RETURNED, None),
    ("resume_line", "get_details_by_id"): (BLOCKED, "resume-only-suspended"),
    ("refuel_data", "get_customer_by_phone"): (NOT_RETURNED, None),
    ("send_payment_request", "get_bills_for_customer"): (NOT_RETURNED, None),
    ("send_payment_request", "get_details_by_id"): (BLOCKED, "ask-only-for-what-is-overdue"),
}
"""What stops a call before which one look-up is left out."""


ELSEWHERE: Final = {
    "cancel_pending_order": ("get_order_details", "change-only-pending"),
    "modify_pending_order_address": ("get_order_details", "change-only-pending"),
    "modify_pending_order_payment": ("get_order_details", "change-only-pending"),
    "modify_pending_order_items": ("get_order_details", "change-only-pending"),
    "return_delivered_order_items": ("get_order_details", "change-only-delivered"),
    "exchange_delivered_order_items": ("get_order_details", "change-only-delivered"),
    "update_reservation_flights": ("get_reservation_details", "look-first"),
    "update_reservation_baggages": ("get_reservation_details", "bags-are-added-only"),
    "update_reservation_passengers": ("get_reservation_details", "as-many-passengers-as-booked"),
    "cancel_reservation": ("get_reservation_details", "look-first"),
    "enable_roaming": ("get_details_by_id", "roaming-only-where-it-is-off"),
    "resume_line": ("get_details_by_id", "resume-only-suspended"),
    "send_payment_request": ("get_details_by_id", "ask-only-for-what-is-overdue"),
}
"""The look that a call needs at its own object, and the rule that no other object satisfies."""


_LINES: Final = ("address1", "address2", "city", "state", "country", "zip")
_ADDRESS: Final[dict[str, Any]] = dict.fromkeys(_LINES, "")
_NO_ITEMS: Final[dict[str, Any]] = {"item_ids": [], "new_item_ids": [], "payment_method_id": SPARE}
_CANCEL: Final = ("cancel_pending_order", {"reason": "no longer needed"})
_READDRESS: Final = ("modify_pending_order_address", _ADDRESS)
_PAY: Final = ("modify_pending_order_payment", {"payment_method_id": SPARE})
_REPLACE: Final = ("modify_pending_order_items", _NO_ITEMS)
_RETURN: Final = ("return_delivered_order_items", {"item_ids": [], "payment_method_id": SPARE})
_EXCHANGE: Final = ("exchange_delivered_order_items", _NO_ITEMS)

AFTER: Final[dict[str, tuple[tuple[tuple[str, dict[str, Any]], str], ...]]] = {
    "cancel_pending_order": (
        (_CANCEL, "change-only-pending"),
        (_READDRESS, "change-only-pending"),
        (_PAY, "change-only-pending"),
        (_REPLACE, "change-only-pending"),
    ),
    "modify_pending_order_items": (
        (_CANCEL, "change-only-pending"),
        (_READDRESS, "change-only-pending"),
        (_PAY, "change-only-pending"),
        (_REPLACE, "change-only-pending"),
    ),
    "return_delivered_order_items": (
        (_RETURN, "change-only-delivered"),
        (_EXCHANGE, "change-only-delivered"),
    ),
    "exchange_delivered_order_items": (
        (_EXCHANGE, "change-only-delivered"),
        (_RETURN, "change-only-delivered"),
    ),
}
"""What may not come after a call about the same order, and the rule that stops it."""

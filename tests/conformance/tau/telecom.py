"""The telecom store of one task.

Derived from the gold calls of the task: the customer, lines and bills that they name are the
customer's. A line is suspended if they resume it, and has no roaming if they enable that; a bill is
overdue if they ask for its payment. The customer is found by a telephone number that is named after
the task. What the customer does on the telephone is done.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from tallystick.canonical import Json
from tests.conformance.tau.corpus import GoldCall, Task
from tests.conformance.tau.world import STRANGER, Look, NotThere, World, named


class Telecom(World):
    """A world of one customer with lines and bills."""

    others: ClassVar = {"customer_id": STRANGER}
    idle: ClassVar = ("check_status_bar", {})

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.customer_id: str = next(iter(named(task, "customer_id")), f"customer_of_{task.id}")
        tools = {call.tool for call in task.calls}
        line = {
            "status": "Suspended" if "resume_line" in tools else "Active",
            "roaming_enabled": "enable_roaming" not in tools,
        }
        bill = {"status": "Overdue" if "send_payment_request" in tools else "Paid"}
        self.details: dict[str, dict[str, Any]] = {
            **{each: dict(line) for each in named(task, "line_id")},
            **{each: dict(bill) for each in named(task, "bill_id")},
        }

    @property
    def subject(self) -> dict[str, Json]:
        return {"customer_id": self.customer_id}

    def _owner(self, kind: str, identifier: str) -> str | None:
        return identifier if identifier in (self.customer_id, STRANGER) else None

    def named_by(self, call: GoldCall) -> dict[str, Any]:
        return self.details[str(call.arguments.get("line_id") or call.arguments["bill_id"])]

    def look_elsewhere(self, call: GoldCall) -> Look:
        self.details["twin"] = self.named_by(call)
        return "get_details_by_id", {"id": "twin"}

    def looks_before(self, call: GoldCall) -> Iterator[Look]:
        for name in {"line_id", "bill_id"} & call.arguments.keys():
            yield "get_customer_by_phone", {"phone_number": f"number of {self.task.id}"}
            yield "get_bills_for_customer", {"customer_id": self.customer_id}
            yield "get_details_by_id", {"id": call.arguments[name]}

    def get_customer_by_phone(self, phone_number: str) -> Json:
        return {"customer_id": self.customer_id, "line_ids": named(self.task, "line_id")}

    def get_customer_by_id(self, customer_id: str) -> Json:
        if self._owner("customer", customer_id) is None:
            raise NotThere("customer_not_found")
        return {"customer_id": customer_id}

    def get_bills_for_customer(self, customer_id: str) -> Json:
        return [{"bill_id": each} for each in named(self.task, "bill_id")]

    def get_details_by_id(self, id: str) -> Json:  # noqa: A002 -- the tool's own name for it
        return self.details[id]

    def done(self, **_: Json) -> Json:
        return "Done"

    enable_roaming = refuel_data = resume_line = send_payment_request = done
    check_status_bar = disconnect_vpn = grant_app_permission = make_payment = reboot_device = done
    reseat_sim_card = reset_apn_settings = set_network_mode_preference = done
    toggle_airplane_mode = toggle_data = toggle_data_saver_mode = done
    toggle_roaming = toggle_wifi_calling = done

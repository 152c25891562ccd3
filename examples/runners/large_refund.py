"""A refund of 120: all was looked up, but of so much a person decides, and nobody is there."""

from typing import Any

from tallystick import PolicyRuntime

runtime = PolicyRuntime.from_environment()


@runtime.tool("lookup_order")
def lookup_order(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "total": 150, "customer_email": "ada@shop.example"}


@runtime.tool("check_refund_eligibility")
def check_refund_eligibility(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "eligible": True}


@runtime.tool("issue_refund")
def issue_refund(order_id: str, amount: int) -> dict[str, Any]:
    print(f"refunded {amount} for {order_id}")
    return {"refunded": amount}


def main() -> None:
    runtime.call("lookup_order", order_id="ORD-001")
    runtime.call("check_refund_eligibility", order_id="ORD-001")
    print(runtime.answer("issue_refund", {"order_id": "ORD-001", "amount": 120}))


if __name__ == "__main__":
    main()

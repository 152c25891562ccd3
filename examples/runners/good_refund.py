"""A refund that keeps to the policy: every call runs."""

from typing import Any

from tallystick import PolicyRuntime

# The policy and the trace are those that `registry policy run` names in the environment.
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


@runtime.tool("send_email")
def send_email(to: str, body: str) -> dict[str, Any]:
    print(f"mailed {to}: {body}")
    return {"sent": True}


def main() -> None:
    order = runtime.call("lookup_order", order_id="ORD-001")
    runtime.call("check_refund_eligibility", order_id="ORD-001")
    runtime.call("issue_refund", order_id="ORD-001", amount=42)
    runtime.call("send_email", to=order["customer_email"], body="We gave you 42 back.")


if __name__ == "__main__":
    main()

"""A refund of an order that nobody looked up: the policy refuses it, and nothing runs."""

from typing import Any

from tallystick import PolicyRuntime

runtime = PolicyRuntime.from_environment()


@runtime.tool("issue_refund")
def issue_refund(order_id: str, amount: int) -> dict[str, Any]:
    print(f"refunded {amount} for {order_id}")
    return {"refunded": amount}


def main() -> None:
    # What a model is answered: it can read there which call comes first.
    print(runtime.answer("issue_refund", {"order_id": "ORD-001", "amount": 42}))


if __name__ == "__main__":
    main()

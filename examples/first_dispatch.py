"""A first dispatch: record an effect, let it happen, report how it ended.

Set TALLYSTICK_URL and TALLYSTICK_TOKEN. Run it twice: the second time the ledger answers, and
nothing is sent. With --crash the process dies in the middle, and `registry effects list` shows what
is known.
"""

import os
import sys
from typing import Any

from tallystick import Client, Effect

ARGUMENTS = {"customer_id": "C-42", "amount_cents": 1250}


def send_invoice(effect: Effect) -> dict[str, Any]:
    """Stand in for the provider; a real one is asked within ``effect.timeout()`` seconds."""
    print(f"sending {effect.arguments} with {effect.headers()}")
    if "--crash" in sys.argv:
        os._exit(1)
    return {"invoice_id": "inv_1"}


def main() -> None:
    # The tuple is pinned when the agent is built. Nothing of it ever comes from a model.
    with Client() as client:
        entry = client.contract("billing.send_invoice", "1.0")
        effect = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] != "--crash" else "invoice-42"
        result = client.call(entry.reference, ARGUMENTS, send_invoice, run="run-1", effect=effect)
        print("recorded:", result)


if __name__ == "__main__":
    main()

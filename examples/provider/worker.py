"""Send one invoice at the reference provider: record it, send it, report how it ended.

    python examples/provider/worker.py invoice-42

Set TALLYSTICK_URL and TALLYSTICK_TOKEN. Whatever goes wrong after the record is durable, the effect
becomes UNKNOWN, and the reconciler asks the provider what happened.
"""

import sys

import httpx

from tallystick import Client, EffectNotOwned

PROVIDER = "http://127.0.0.1:8701"
ARGUMENTS = {"customer_id": "C-42", "amount_cents": 1250}


def main(name: str) -> None:
    with Client() as client, httpx.Client(base_url=PROVIDER, trust_env=False) as provider:
        reference = client.contract("provider.send_invoice", "1.0").reference
        try:
            with client.effect(reference, ARGUMENTS, run="run-1", effect=name) as effect:
                answer = provider.post(
                    "/invoices",
                    json=effect.arguments,
                    headers={**effect.headers(), "Effect-Id": effect.effect_id},
                    timeout=effect.timeout(),
                )
                if answer.status_code == httpx.codes.PAYMENT_REQUIRED:
                    effect.failed("declined", "The provider declined.")
                    print("declined")
                elif answer.raise_for_status().status_code == httpx.codes.ACCEPTED:
                    effect.unknown("the provider has not decided yet")
                    print("accepted, and not decided yet")
                else:
                    booked = answer.json()["reference"]
                    effect.succeeded({"reference": booked}, provider_reference=booked)
                    print(f"sent as {booked}")
        except EffectNotOwned as recorded:
            print(f"not sent: the record says {recorded.state}")
        except httpx.HTTPError as fault:
            print(f"nobody knows: {type(fault).__name__}")


if __name__ == "__main__":
    main(sys.argv[1])

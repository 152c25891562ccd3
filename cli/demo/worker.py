"""A worker: takes one effect of the ledger, does it at the provider, and reports.

    python -m cli.demo.worker EFFECT_ID --provider URL [--pause before_send|after_send]

The registry is where TALLYSTICK_URL and TALLYSTICK_TOKEN say. Each step is one line of JSON on
standard output: about_to_send, accepted, reported. With a pause, it waits there for a line on
standard input; whoever started it may kill it meanwhile.
"""

import argparse
import json
import sys
from typing import Final

import httpx

from cli.demo.tools import reference_in, request_for
from tallystick import Client
from tallystick.errors import TallystickError

BEFORE_SEND: Final = "before_send"
AFTER_SEND: Final = "after_send"


def work(effect_id: str, provider_url: str, pause: str | None) -> None:
    """Run one effect, which may be a new attempt of one that another worker began.

    Raises EffectNotOwned or a refusal if it is not ours to run.
    """
    with (
        Client(transport=httpx.HTTPTransport()) as client,
        httpx.Client(base_url=provider_url, trust_env=False) as http,
    ):
        recorded = client.show(effect_id).document
        with client.dispatch(effect_id) as effect:
            say("about_to_send", version=recorded["version"], key=effect.idempotency_key)
            wait_if(pause == BEFORE_SEND)
            reference = reference_in(http.send(request_for(http, str(recorded["tool"]), effect)))
            say("accepted", reference=reference)
            wait_if(pause == AFTER_SEND)
            effect.succeeded({"reference": reference}, provider_reference=reference)
        say("reported")


def say(event: str, **facts: object) -> None:
    """Write one step."""
    print(json.dumps({"event": event, **facts}), flush=True)  # noqa: T201 - the lines are the interface


def wait_if(paused: bool) -> None:
    """Wait for a line on standard input, if this is the place; its end ends the process."""
    if paused and not sys.stdin.readline():
        sys.exit(1)


def main() -> None:
    """Run one effect; the exit code is 1 if it was not ours to run."""
    parser = argparse.ArgumentParser(
        prog="python -m cli.demo.worker",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("effect_id")
    parser.add_argument("--provider", required=True, help="the provider's address")
    parser.add_argument("--pause", choices=[BEFORE_SEND, AFTER_SEND], help="where to wait")
    given = parser.parse_args()
    try:
        work(given.effect_id, given.provider, given.pause)
    except TallystickError as refusal:
        sys.exit(str(refusal))


if __name__ == "__main__":
    main()

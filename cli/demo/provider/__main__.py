"""Run the provider on the loopback until the process is ended."""

import argparse
import json
import socket
from pathlib import Path
from typing import Final

import uvicorn

import cli.demo.provider
from cli.demo.provider.app import create_app
from cli.demo.provider.books import MEMORY
from cli.demo.provider.faults import Plan

ADDRESS: Final = "127.0.0.1"
BACKLOG: Final = 128


def server_of(books: Path | str, plan: Plan) -> uvicorn.Server:
    """Return a server of the provider, to be run on a socket that listens."""
    # An answer that breaks off is an error to the server's log, and what it is for to us.
    return uvicorn.Server(
        uvicorn.Config(
            create_app(books, plan),
            log_level="critical",
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
    )


def listening(port: int) -> socket.socket:
    """Return a socket that listens on the loopback; with port 0 the system chooses a free one."""
    listener = socket.create_server((ADDRESS, port), backlog=BACKLOG)
    listener.setblocking(False)
    return listener


def main() -> None:
    """Say where it listens, in one line of JSON, and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m cli.demo.provider",
        description=cli.demo.provider.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--books", default=MEMORY, help="the file that the books are in")
    parser.add_argument("--plan", type=Path, help="a file with the first plan, in JSON")
    given = parser.parse_args()
    plan = Plan.model_validate_json(given.plan.read_bytes()) if given.plan else Plan()
    with listening(given.port) as listener:
        port = listener.getsockname()[1]
        told = {"port": port, "url": f"http://{ADDRESS}:{port}"}
        print(json.dumps(told), flush=True)  # noqa: T201 - the line is the interface
        server_of(given.books, plan).run(sockets=[listener])


if __name__ == "__main__":
    main()

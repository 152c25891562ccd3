"""What the judge of the crash tests books of what it is sent."""

import socket
from pathlib import Path
from threading import Thread

from tests.crash.provider import Books, Provider, read_books

HEAD = (
    b"POST /idempotent HTTP/1.1\r\nHost: x\r\n"
    b"Effect-Id: e\r\nFence: 1\r\nContent-Length: 40\r\n\r\n"
)


def test_half_a_request_is_none(tmp_path: Path):
    """A worker that is killed while it sends has asked for nothing."""
    books = tmp_path / "books"
    with Provider(Books(books), 1) as provider:
        serving = Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            with socket.create_connection(("127.0.0.1", provider.server_address[1])) as worker:
                worker.sendall(HEAD + b'{"item": 1, ')
                worker.shutdown(socket.SHUT_WR)
                assert worker.recv(1024) == b""
        finally:
            provider.shutdown()
            serving.join()
    assert list(read_books(books)) == []

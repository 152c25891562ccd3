"""A PostgreSQL of one's own: started with the first process that uses it, stopped after the last.

    with EmbeddedPostgres.attach(folder) as postgres:
        connect(postgres.url)

The server is a child of a supervisor process (`python -m server.embedded`) that belongs to nobody:
it outlives the process that started it, restarts a killed server, and goes when no user is left.
If the supervisor is killed, the server ends too; the next `attach` starts both again, and every
commit is still there. On macOS a process cannot be told to die with its parent: there such a server
goes on until the next `attach` or `stop` ends it.
"""

from server.embedded.attachment import EmbeddedPostgres, stop
from server.embedded.errors import EmbeddedPostgresError

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "stop"]

"""Every SQL statement of the ledger: rows in, values out."""

from ledger.store.effects import Held, LedgerStore, Search
from ledger.store.workers import WorkerSession, heartbeat, workers

__all__ = ["Held", "LedgerStore", "Search", "WorkerSession", "heartbeat", "workers"]

"""Every SQL statement of the ledger: rows in, values out."""

from ledger.store.approvals import ApprovalSearch, ApprovalStore
from ledger.store.budgets import BudgetStore
from ledger.store.effects import Held, LedgerStore, Search
from ledger.store.evidence import Standing, standings
from ledger.store.gates import GateStore, RunSubject
from ledger.store.quarantine import QuarantineSearch, QuarantineStore
from ledger.store.runs import Trace, TraceEntry, TraceStore
from ledger.store.workers import WorkerSession, heartbeat, workers

__all__ = [
    "ApprovalSearch",
    "ApprovalStore",
    "BudgetStore",
    "GateStore",
    "Held",
    "LedgerStore",
    "QuarantineSearch",
    "QuarantineStore",
    "RunSubject",
    "Search",
    "Standing",
    "Trace",
    "TraceEntry",
    "TraceStore",
    "WorkerSession",
    "heartbeat",
    "standings",
    "workers",
]

"""What one can ask of the ledger: one use case a function, one module a group of them.

Everything here runs inside one transaction that the server commits. What a worker may act on leaves
only after that commit.
"""

from ledger.service.approvals import approval_id, approvals_of, approve, approved_of, reject
from ledger.service.dispatch import dispatch
from ledger.service.gates import note_refused
from ledger.service.listing import take_listed
from ledger.service.migrate import migrate
from ledger.service.people import (
    Quarantined,
    cancel,
    in_quarantine,
    quarantined,
    resolve,
    retry,
    withdraw,
)
from ledger.service.plan import PlanRequest, plan
from ledger.service.report import report
from ledger.service.runs import Run, find_run, set_subject, trace_of
from ledger.service.view import Dispatch, Ledger, View, contract_of, found, sent_arguments, view_of

__all__ = [
    "Dispatch",
    "Ledger",
    "PlanRequest",
    "Quarantined",
    "Run",
    "View",
    "approval_id",
    "approvals_of",
    "approve",
    "approved_of",
    "cancel",
    "contract_of",
    "dispatch",
    "find_run",
    "found",
    "in_quarantine",
    "migrate",
    "note_refused",
    "plan",
    "quarantined",
    "reject",
    "report",
    "resolve",
    "retry",
    "sent_arguments",
    "set_subject",
    "take_listed",
    "trace_of",
    "view_of",
    "withdraw",
]

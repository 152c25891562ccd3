"""What one can ask of the ledger: one use case a function, one module a group of them.

Everything here runs inside one transaction that the server commits. What a worker may act on leaves
only after that commit.
"""

from ledger.service.approvals import approval_id, approvals_of, approve, approved_of, reject
from ledger.service.dispatch import dispatch
from ledger.service.gates import note_refused
from ledger.service.people import cancel, resolve
from ledger.service.plan import PlanRequest, plan
from ledger.service.report import report
from ledger.service.runs import Run, find_run, set_subject, trace_of
from ledger.service.view import Dispatch, Ledger, View, contract_of, found, sent_arguments, view_of

__all__ = [
    "Dispatch",
    "Ledger",
    "PlanRequest",
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
    "note_refused",
    "plan",
    "reject",
    "report",
    "resolve",
    "sent_arguments",
    "set_subject",
    "trace_of",
    "view_of",
]

"""What one can ask of the ledger: one use case a function, one module a group of them.

Everything here runs inside one transaction that the server commits. What a worker may act on leaves
only after that commit.
"""

from ledger.service.dispatch import dispatch
from ledger.service.people import cancel, resolve
from ledger.service.plan import PlanRequest, plan
from ledger.service.report import report
from ledger.service.view import Dispatch, Ledger, View, contract_of, found, sent_arguments, view_of

__all__ = [
    "Dispatch",
    "Ledger",
    "PlanRequest",
    "View",
    "cancel",
    "contract_of",
    "dispatch",
    "found",
    "plan",
    "report",
    "resolve",
    "sent_arguments",
    "view_of",
]

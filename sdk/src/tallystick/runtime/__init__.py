"""A runtime for tools in one process: every call passes the gates before its function runs."""

from tallystick.runtime.policy_runtime import PolicyRuntime
from tallystick.runtime.proposal import Approval, ApprovalRequest, Proposal
from tallystick.runtime.trace import Entry

__all__ = ["Approval", "ApprovalRequest", "Entry", "PolicyRuntime", "Proposal"]

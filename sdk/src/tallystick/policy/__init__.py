"""Policies: what an agent's calls are held to beside their contracts. Pure, and without a model."""

from tallystick.policy.call import Call
from tallystick.policy.decision import Verdict, decide
from tallystick.policy.facts import captured
from tallystick.policy.history import CapturedFact, History, Tally
from tallystick.policy.limits import Charge, charges, window_start
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Decision, Limit, Risk

__all__ = [
    "Call",
    "CapturedFact",
    "Charge",
    "Decision",
    "History",
    "Limit",
    "Policy",
    "Risk",
    "Tally",
    "Verdict",
    "captured",
    "charges",
    "decide",
    "window_start",
]

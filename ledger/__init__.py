"""The ledger: what was called, and how it ended.

A record of each effect is durable before the effect begins.
"""

"""Versioned tool contracts for LLM agents, and a client for the dispatch ledger."""

"""The registry: what exactly may be called.

Contracts are resolved by tuple, never by name alone.
"""

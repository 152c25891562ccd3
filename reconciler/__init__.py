"""The reconciler: what really happened, when nobody knows.

It asks the provider, and never retries blindly.
"""

"""Rollout: how a fleet moves to a new version. An old one goes when nothing refers to it."""

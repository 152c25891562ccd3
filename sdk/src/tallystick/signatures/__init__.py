"""Contracts of Python signatures: from a function or a class to a contract document.

Pure: nothing here reads the lockfile, a clock or the network.
"""

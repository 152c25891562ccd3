"""The lockfile: the contracts of a project's tools that somebody accepted, beside the code."""

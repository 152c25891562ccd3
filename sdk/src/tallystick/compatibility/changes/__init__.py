"""The list of changes that a reviewer reads. It explains, and never decides."""

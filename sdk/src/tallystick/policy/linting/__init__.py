"""What can hardly be meant in a policy, one kind a module."""

"""The transform of two axes, compiled."""

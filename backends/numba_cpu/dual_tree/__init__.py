"""The dual-tree transform of two axes, compiled."""

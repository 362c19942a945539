"""The dual-tree transforms of rows and of panels, compiled."""

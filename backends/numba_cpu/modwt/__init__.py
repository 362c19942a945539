"""The MODWT, compiled."""

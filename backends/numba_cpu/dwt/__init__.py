"""The decimated transform, compiled."""

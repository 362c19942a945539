"""The scaling study."""

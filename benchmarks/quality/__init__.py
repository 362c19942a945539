"""The quality study."""

"""The CPU backends measured."""

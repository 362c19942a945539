"""The GPU backend measured."""

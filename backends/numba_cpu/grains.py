"""Samples for each thread that make it pay, by transform, as measured."""

SAMPLES = {"dwt": 1 << 13, "modwt": 1 << 13, "dwt2": 1 << 17, "dual_tree": 1 << 15}
"""Those of the dual tree are not measured."""

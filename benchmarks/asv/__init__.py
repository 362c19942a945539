"""A suite for airspeed velocity: time and peak memory of public calls.

``asv run --quick --python=same`` in this folder runs it. Benchmarks on a GPU are skipped without one.
"""

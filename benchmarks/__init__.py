"""Measurements behind the figures in the documentation: cases as data, results as JSON."""

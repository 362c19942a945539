"""The calibrated SKE model measured and validated."""

"""How thresholds are chosen (rules) and what they do to coefficients (shrinkage)."""

"""What a rule may ask about detail coefficients: exact, and mergeable from parts."""

"""Statistics of detail coefficients: what a threshold rule may ask for, and how it is computed."""

"""Statistics of detail coefficients that threshold rules may ask for."""

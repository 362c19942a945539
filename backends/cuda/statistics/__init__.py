"""Statistics of detail coefficients in device memory."""

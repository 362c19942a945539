"""Plain text recordings."""

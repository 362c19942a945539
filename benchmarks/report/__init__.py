"""The page of all measurements."""

"""Rule "js", compiled."""

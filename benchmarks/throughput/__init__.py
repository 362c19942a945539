"""Files, streams, volumes and clusters measured."""

"""The transform of two axes on the device."""

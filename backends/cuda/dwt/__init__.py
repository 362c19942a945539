"""The decimated transform on the device."""

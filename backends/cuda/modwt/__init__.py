"""The MODWT on the device."""

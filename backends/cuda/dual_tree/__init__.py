"""The dual-tree complex wavelet transform on the device, of traces and of panels."""

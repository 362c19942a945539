"""npy, npz, HDF5 and Zarr."""

"""The version, where the package, its metadata and its reports find it."""

__version__ = "0.2.0"

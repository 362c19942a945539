"""Transforms of both axes of sections: a template of filters that slide down columns, the DWT, and the dual tree."""

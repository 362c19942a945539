"""SEG-Y and SU through segyio."""

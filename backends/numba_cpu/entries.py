"""The kernels that are called from Python, and which of them a run of each transform calls."""

from __future__ import annotations

from itertools import chain

from .native import Kernel

PEAK = Kernel("dwt.kernels", "peak", "i B[]")
FORWARD = Kernel("dwt.kernels", "forward", "i[] i i i i i i i[] i i i i B[] i T[] T[]")
INVERSE = Kernel("dwt.kernels", "inverse", "i[] i i i i i i i[] i i d[,] i i T[] T[]")
PANEL_FORWARD = Kernel("dwt2.kernels", "forward", "i[] i[] i i[] i i T[] T[] i i T[] T[]")
PANEL_INVERSE = Kernel("dwt2.kernels", "inverse", "i[] i[] i i[] i T[] T[] i T[] T[] i i d[,]")
MODWT_FORWARD = Kernel("modwt.kernels", "forward", "i i i[,] i i i i i[] i i T[] T[]")
MODWT_INVERSE = Kernel("modwt.kernels", "inverse", "i i i[,] i i i i i[] i i d[,] i T[]")
DUAL_FIRST = Kernel("dual_tree.kernels", "first_forward", "i[] i[] i i[] T[] T[]")
DUAL_FIRST_INVERSE = Kernel("dual_tree.kernels", "first_inverse", "i[] i[] i i[] T[]")
DUAL = Kernel("dual_tree.kernels", "forward", "i[] i[] i i[] T[] T[] T[] T[]")
DUAL_INVERSE = Kernel("dual_tree.kernels", "inverse", "i[] i[] i i[] T[] T[] T[] T[] i")
DUAL_ROWS_FIRST = Kernel("dual_tree.row_kernels", "first_forward", "i[] i[] i i i T[] T[]")
DUAL_ROWS_FIRST_INVERSE = Kernel("dual_tree.row_kernels", "first_inverse", "i[] i[] i i i T[]")
DUAL_ROWS = Kernel("dual_tree.row_kernels", "forward", "i[] i[] i i i T[] T[] T[] T[]")
DUAL_ROWS_INVERSE = Kernel("dual_tree.row_kernels", "inverse", "i[] i[] i i i T[] T[] T[] T[] i")
SHORT_ROWS = Kernel("selection_kernels", "short_rows", "i[,] d[] B[] T[] d[,] d[,]")
MEAN_SQUARES = Kernel("selection_kernels", "mean_squares", "i[] i[] T[] d[]")
DRAW = Kernel("selection_kernels", "draw", "i[] i[] i[] i[] B[] B[]")
BRACKETS = Kernel("selection_kernels", "brackets", "i[] B[] B[] B[] B[]")
LONG_CHUNKS = Kernel("selection_kernels", "long_chunks", "i[] i[] i[] B[] T[] B[] B[] B[,] i[] i[] d[]")
CLOSER = Kernel("selection_kernels", "closer", "i[] i[] B[] B[] B[] i i[] i[]")
LIST_AGAIN = Kernel("selection_kernels", "list_again", "i[] B[] B[] B[] B[,] i[] i[]")
MIDDLES = Kernel("selection_kernels", "middles", "i[] i[] B[] T[] B[] B[] i i[] i[] d[]")
TABULATE = Kernel("selection_kernels", "tabulate", "B[] B B B i i[]")
TABULATE_FEW = Kernel("selection_kernels", "tabulate_few", "B[] B B B i u[]")
LOCAL = Kernel("local.kernels", "shrink", "i[,] i[,] i[,] i i i i i[] i[] d[,] T[]")
LOCAL_PLANES = Kernel("local.plane_kernels", "shrink", "i[,] i i d[,] T[]")
CHOOSE = Kernel("threshold_kernels", "choose", "i i i i d[,] d[,] i[] d d[] d[] d d[,] i T[]")
ENERGIES = Kernel("selection_kernels", "energies", "T[] T[] d d[]")

TRANSFORMS = {
    "dwt": (INVERSE, FORWARD, SHORT_ROWS, PEAK, CHOOSE),
    "modwt": (MODWT_INVERSE, MODWT_FORWARD, SHORT_ROWS, PEAK, CHOOSE),
    "modwt2": (MODWT_INVERSE, MODWT_FORWARD, SHORT_ROWS, PEAK),
    "dwt2": (PANEL_INVERSE, PANEL_FORWARD, SHORT_ROWS, PEAK),
    "dtcwt": (DUAL_ROWS_INVERSE, DUAL_ROWS, DUAL_ROWS_FIRST_INVERSE, DUAL_ROWS_FIRST, SHORT_ROWS, PEAK),
    "dtcwt2": (DUAL_INVERSE, DUAL, DUAL_FIRST_INVERSE, DUAL_FIRST, SHORT_ROWS, PEAK),
    "wp": (INVERSE, FORWARD, SHORT_ROWS, PEAK),
}
"""What a run of each transform calls, those first that take longest to compile."""

LONG = (MIDDLES, BRACKETS, CLOSER, LONG_CHUNKS, LIST_AGAIN, DRAW, MEAN_SQUARES)
"""What statistics of long rows call besides."""

ALL = tuple(dict.fromkeys([*chain(*TRANSFORMS.values()), *LONG, TABULATE, TABULATE_FEW, LOCAL, LOCAL_PLANES, ENERGIES]))

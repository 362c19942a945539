"""The kernels that are called from Python, and which of them a run of each transform calls."""

from __future__ import annotations

from itertools import chain

from .native import Kernel

PEAK = Kernel("dwt_kernels", "peak", "i B[]")
FORWARD = Kernel("dwt_kernels", "forward", "i[] i i i i i i i[] i i i i T[] T[]")
INVERSE = Kernel("dwt_kernels", "inverse", "i[] i i i i i i i[] i i d[,] i i T[] T[]")
SECTION_FORWARD = Kernel("dwt2_kernels", "forward", "i[] i[] i i[] i i T[] T[] i i T[] T[]")
SECTION_INVERSE = Kernel("dwt2_kernels", "inverse", "i[] i[] i i[] i T[] T[] i T[] T[] i d[,]")
MODWT_FORWARD = Kernel("modwt_kernels", "forward", "i i i[,] i i i i i[] i i T[] T[]")
MODWT_INVERSE = Kernel("modwt_kernels", "inverse", "i i i[,] i i i i i[] i i d[,] i T[]")
DUAL_FIRST = Kernel("dual_tree_kernels", "first_forward", "i[] i[] i i[] T[] T[]")
DUAL_FIRST_INVERSE = Kernel("dual_tree_kernels", "first_inverse", "i[] i[] i i[] T[]")
DUAL = Kernel("dual_tree_kernels", "forward", "i[] i[] i i[] T[] T[] T[] T[]")
DUAL_INVERSE = Kernel("dual_tree_kernels", "inverse", "i[] i[] i i[] T[] T[] T[] T[] i")
DUAL_ROWS = Kernel("dual_tree_kernels", "rows_forward", "i[] i[] i i[] T[] T[] T[] T[]")
DUAL_ROWS_INVERSE = Kernel("dual_tree_kernels", "rows_inverse", "i[] i[] i i[] T[] T[] T[] T[] i")
SHORT_ROWS = Kernel("selection_kernels", "short_rows", "i[,] d[] B[] T[] d[,] d[,]")
DRAW = Kernel("selection_kernels", "draw", "i[] i[] i[] i[] B[] B[]")
BRACKETS = Kernel("selection_kernels", "brackets", "i[] B[] B[] B[] B[]")
LONG_CHUNKS = Kernel("selection_kernels", "long_chunks", "i[] i[] i[] B[] T[] B[] B[] B[,] i[] i[] d[]")
MIDDLES = Kernel("selection_kernels", "middles", "i[] i[,] B[] T[] B[] B[] i i[] i[] d[] d[] d[]")
TABULATE = Kernel("selection_kernels", "tabulate", "B[] B B B i i[]")
TABULATE_FEW = Kernel("selection_kernels", "tabulate_few", "B[] B B B i u[]")
LOCAL = Kernel("local_kernels", "shrink_rows", "i[,] i[,] i[,] i i i i i[] i[] d[,] T[]")
LOCAL_SECTIONS = Kernel("local_kernels", "shrink_sections", "i[,] i i d[,] T[]")
CHOOSE = Kernel("selection_kernels", "choose", "i i i d[,] d[,] i[] d d[] d[] d d[,] i T[]")
TRANSFER = Kernel("team_kernels", "transfer", "i[] i")
LAUNCH = Kernel("team_kernels", "launch", "i")
SERVE = Kernel("team_kernels", "serve", "i")

TEAM = (SERVE, LAUNCH)
"""The threads of `team` run these, whatever the dtype."""
ALWAYS = (SHORT_ROWS, *TEAM, PEAK)
LONG = (MIDDLES, LONG_CHUNKS, BRACKETS, DRAW)
"""Statistics of long rows call these as well."""
TRANSFORMS = {
    "dwt": (FORWARD, INVERSE, *ALWAYS, CHOOSE),
    "modwt": (LOCAL, MODWT_INVERSE, MODWT_FORWARD, *ALWAYS, CHOOSE),  # with what rule js takes on recordings
    "modwt2": (MODWT_INVERSE, MODWT_FORWARD, *ALWAYS),
    "dwt2": (SECTION_FORWARD, SECTION_INVERSE, *ALWAYS),
    "dtcwt": (MODWT_INVERSE, MODWT_FORWARD, DUAL_ROWS_INVERSE, DUAL_ROWS, *ALWAYS),
    "dtcwt2": (DUAL_INVERSE, DUAL, DUAL_FIRST_INVERSE, DUAL_FIRST, *ALWAYS),
    "wp": (FORWARD, INVERSE, *ALWAYS),
}
"""The kernels of a run of each transform, first those that take longest to compile."""
OTHERS = (TABULATE, TABULATE_FEW, LOCAL_SECTIONS, TRANSFER)
ALL = tuple(dict.fromkeys([*chain(*TRANSFORMS.values()), *LONG, *OTHERS]))

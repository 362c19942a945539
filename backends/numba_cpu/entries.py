"""The kernels that are called from Python, and which of them a run of each transform calls."""

from __future__ import annotations

from itertools import chain

from .native import Kernel

CUT = "cut(lengths:i[] left:i right:i step:i tiles:i scratch:i)"
CUT_MODWT = "cut(step:i n:i margins:i[,] tile:i tiles:i scratch:i)"
PLACES = "places(rows:i details:i[] approximation:i)"
FILTERS, TAPS = "bank(lo:T[] hi:T[])", "bank(even:T[] odd:T[])"
AXIS, AXIS_INVERSE = "(first:i mode:i lo:T[] hi:T[])", "(shift:i even:T[] odd:T[])"
TREES, TREES_INVERSE = "trees(a_lo:T[] a_hi:T[] b_lo:T[] b_hi:T[])", "trees(a_even:T[] a_odd:T[] b_even:T[] b_odd:T[])"
SHRINKING = "shrinking(function:i thresholds:d[,])"
CHUNKS, COUNTED = "chunks(addresses:i[] lengths:i[] pools:i[])", "inside:i[] below:i[] squares:d[]"
LOCAL_PLAN = "plan(bands:i[,] links:i[,] places:i[,] tiles:i longest:i needed:i)"
MEASURED, FACTORS = "measured(medians:d[,] powers:d[,] counts:i[])", "factors(scale:d factors:d[] gains:d[])"
CHOSEN = "chosen(most:d thresholds:d[,] other:i)"

PEAK = Kernel("dwt_kernels", "peak", "i B[]")
FORWARD = Kernel("dwt_kernels", "forward", f"{CUT} {PLACES} i i i {FILTERS}")
INVERSE = Kernel("dwt_kernels", "inverse", f"{CUT} {PLACES} i d[,] i i {TAPS}")
SECTION_FORWARD = Kernel("dwt2_kernels", "forward", f"i[] i[] i i[] along{AXIS} down{AXIS}")
SECTION_INVERSE = Kernel("dwt2_kernels", "inverse", f"i[] i[] i i[] along{AXIS_INVERSE} down{AXIS_INVERSE} {SHRINKING}")
MODWT_FORWARD = Kernel("modwt_kernels", "forward", f"{CUT_MODWT} {PLACES} i {FILTERS}")
MODWT_INVERSE = Kernel("modwt_kernels", "inverse", f"{CUT_MODWT} {PLACES} i d[,] i T[]")
DUAL_FIRST = Kernel("dual_tree_kernels", "first_forward", "i[] i[] i i[] T[] T[]")
DUAL_FIRST_INVERSE = Kernel("dual_tree_kernels", "first_inverse", "i[] i[] i i[] T[]")
DUAL = Kernel("dual_tree_kernels", "forward", f"i[] i[] i i[] {TREES}")
DUAL_INVERSE = Kernel("dual_tree_kernels", "inverse", f"i[] i[] i i[] {TREES_INVERSE} i")
DUAL_ROWS = Kernel("dual_tree_kernels", "rows_forward", f"i[] i[] i i[] {TREES}")
DUAL_ROWS_INVERSE = Kernel("dual_tree_kernels", "rows_inverse", f"i[] i[] i i[] {TREES_INVERSE} i")
SHORT_ROWS = Kernel("selection_kernels", "short_rows", "i[,] d[] B[] T[] d[,] d[,]")
DRAW = Kernel("selection_kernels", "draw", "i[] i[] i[] i[] B[] B[]")
BRACKETS = Kernel("selection_kernels", "brackets", "i[] B[] B[] B[] B[]")
LONG_CHUNKS = Kernel(
    "selection_kernels", "long_chunks", f"{CHUNKS} B[] T[] brackets(lows:B[] highs:B[]) found(listed:B[,] {COUNTED})"
)
MIDDLES = Kernel("selection_kernels", "middles", f"i[] i[,] B[] T[] lists(listed:i {COUNTED}) d[] d[]")
TABULATE = Kernel("selection_kernels", "tabulate", "B[] B B B i i[]")
TABULATE_FEW = Kernel("selection_kernels", "tabulate_few", "B[] B B B i u[]")
LOCAL = Kernel("local_kernels", "shrink_rows", f"{LOCAL_PLAN} i i[] i[] d[,] T[]")
LOCAL_SECTIONS = Kernel("local_kernels", "shrink_sections", "i[,] i i d[,] T[]")
CHOOSE = Kernel("selection_kernels", "choose", f"rows(samples:i length:i) i {MEASURED} {FACTORS} {CHOSEN} T[]")
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

"""That places of threads and blocks are not negative, which LLVM is not told by numba.

An index that may be negative counts from the end of an array, so that without this every access computes two addresses
and chooses one, in registers of 64 bits.
"""

from __future__ import annotations

import re

_RANGES = {"tid": (9001, "i32 0, i32 1024"), "ctaid": (9002, "i32 0, i32 2147483647")}
"""Metadata of LLVM: its number, above those of numba, the least value and the end of them."""
_PLACE = re.compile(r'call i32 @"llvm\.nvvm\.read\.ptx\.sreg\.(tid|ctaid)\.[xyz]"\(\)')


def not_negative(code: str) -> str:
    """LLVM IR whose kernels read places in these ranges."""
    known, count = _PLACE.subn(lambda found: f"{found[0]}, !range !{_RANGES[found[1]][0]}", code)
    return known + "".join(f"!{n} = !{{ {values} }}\n" for n, values in _RANGES.values()) if count else code

"""Kernels on disk: binaries and LLVM IR that calls on this machine made, and LLVM IR that a release comes with."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from numba.core.typing import signature
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.dispatcher import CUDACache, _Kernel
from numba.types import void

from wavefilt._version import __version__

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.cuda.codegen import JITCUDACodegen
    from numba.types import Type

    Types: TypeAlias = tuple[Type, ...]
    Row: TypeAlias = dict[str, Any]

RELEASED = Path(__file__).parents[1] / "released"
"""A file for each number of taps, made by `wavefilt.backends.cuda.releasing`."""
STATE = ("name", "entry_name", "llvm_strs", "nvvm_options", "needs_cudadevrt", "nrt", "use_cooperative", "lto")
"""What a library of numba's has beside what is made of it for a GPU."""


@cache
def _sources() -> str:
    """Digest of all sources here: kernels are closures over functions of several files."""
    text = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    return text.hexdigest()


class Cache(CUDACache):  # type: ignore[misc]  # numba has no types
    """numba's cache on disk, without which a call gets on as well: an error there is a kernel compiled again."""

    def __init__(self, function: Callable[..., Any], constants: Hashable) -> None:
        self._constants = constants
        super().__init__(function)

    def _index_key(self, signature: Types, codegen: JITCUDACodegen) -> Hashable:
        return signature, codegen.magic_tuple(), self._constants, _sources(), self._launch_config_key

    def load_overload(self, signature: Types, target_context: BaseContext) -> _Kernel | None:
        """As numba's, which first reads its tables for compilation: half a second that a kernel does not need."""
        with suppress(Exception):  # damaged files give errors of any kind
            return self._load_overload(signature, target_context)
        with suppress(OSError):
            self.flush()
        return None

    def save_overload(self, signature: Types, data: _Kernel) -> None:
        with suppress(Exception):  # the disk is full, or the index came to harm since it was read
            super().save_overload(signature, data)


class Released:
    """The LLVM IR of a kernel, from the file for its number of taps, where the release has it.

    It is for the version of numba-cuda that made it, and for the sources that it was made of; any version of Python.
    """

    def __init__(self, function: Callable[..., Any], constants: Hashable, taps: int) -> None:
        self._kernel, self._taps = f"{function.__module__}.{function.__qualname__} {constants!r}", taps

    def _name(self, types: Types) -> str:
        return f"{self._kernel} {types}"

    def load(self, types: Types) -> _Kernel | None:
        own = _released(self._taps).get(self._name(types))
        if own is None:
            return None
        made: dict[str, Row] = {"ptx_cache": {}, "cubin_cache": {}, "linkerinfo_cache": {}}
        library = CUDACodeLibrary._rebuild(codegen=None, max_registers=None, **own, **made)
        return _Kernel._rebuild(
            cooperative=False,
            name=library._entry_name,
            signature=signature(void, *types),
            codelibrary=library,
            debug=False,
            lineinfo=False,
            call_helper=None,  # of debugged kernels
            extensions=[],
        )

    def packed(self, types: Types, kernel: _Kernel) -> tuple[str, Row]:
        """Name and contents for `write`."""
        state = kernel._codelibrary._reduce_states()
        return self._name(types), {name: state[name] for name in STATE}


def _made_by() -> list[str]:
    return [version("numba-cuda"), _sources()]


@cache
def _released(taps: int) -> Mapping[str, Row]:
    with suppress(OSError, lzma.LZMAError, ValueError):
        made_by, kernels = json.loads(lzma.decompress((RELEASED / f"{taps}.xz").read_bytes()))
        if made_by == _made_by():
            return kernels  # type: ignore[no-any-return]
    return {}


def write(taps: int, kernels: Mapping[str, Row]) -> int:
    """Keep the kernels with a number of taps for a release; the bytes of their file."""
    RELEASED.mkdir(exist_ok=True)
    return (RELEASED / f"{taps}.xz").write_bytes(lzma.compress(json.dumps([_made_by(), kernels]).encode()))

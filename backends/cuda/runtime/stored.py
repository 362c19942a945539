"""Kernels on disk: binaries and LLVM IR that calls on this machine made, and LLVM IR that a release comes with."""

from __future__ import annotations

import hashlib
import json
import lzma
import pickle
import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from numba.core.typing import signature
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.dispatcher import _Kernel
from numba.types import void

from wavefilt._version import __version__
from wavefilt.backends import kernel_files

from .target import cuda

if TYPE_CHECKING:
    from numba.cuda.codegen import JITCUDACodegen
    from numba.types import Type

    Types: TypeAlias = tuple[Type, ...]
    Row: TypeAlias = dict[str, Any]

PACKAGE = Path(__file__).parents[1]
RELEASED = PACKAGE / "released"
"""A file for each number of taps, made by `wavefilt.backends.cuda.releasing`."""
STATE = ("name", "entry_name", "llvm_strs", "nvvm_options", "needs_cudadevrt", "nrt", "use_cooperative", "lto")
"""What a library of numba's has beside what is made of it for a GPU."""


@cache
def _sources() -> str:
    """Digest of all sources here: kernels are closures over functions of several files."""
    text = hashlib.sha256(__version__.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    return text.hexdigest()


@cache
def _made_by() -> list[str]:
    return [version("numba-cuda"), _sources()]


def _told(function: Callable[..., Any], constants: Hashable) -> str:
    """A kernel among all of its sources: it is a closure over ``constants``."""
    return f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno} {constants!r}"


class Cache:
    """Kernels that were compiled on this machine, as binaries or as LLVM IR alone.

    numba's own cache has files with numbers and a list of them, which processes that write at once mix up: a kernel was
    then loaded in the place of another.
    """

    def __init__(self, function: Callable[..., Any], constants: Hashable) -> None:
        self._function = function.__name__
        self._depends = f"{_told(function, constants)} {sys.version_info[:2]} {_made_by()}"

    def _name(self, types: Types, codegen: JITCUDACodegen) -> str:
        text = f"{self._depends} {types} {codegen.magic_tuple()}"
        return f"{self._function}-{hashlib.sha256(text.encode()).hexdigest()}.kernel"

    def load(self, types: Types, codegen: JITCUDACodegen) -> _Kernel | None:
        with suppress(Exception):  # numba has changed
            packed = kernel_files.read(self._name(types, codegen), kernel_files.folders(PACKAGE))
            return packed and _Kernel._rebuild(**pickle.loads(packed))
        return None

    def save(self, types: Types, codegen: JITCUDACodegen, kernel: _Kernel) -> None:
        """Keep it, if that can be: a call gets on as well without."""
        with suppress(Exception), kernel_files.writable(PACKAGE) as folder:
            kernel_files.write(self._name(types, codegen), folder, cuda.serialize.dumps(kernel._reduce_states()))


class Released:
    """The LLVM IR of a kernel, from the file for its number of taps, where the release has it.

    It is for the version of numba-cuda that made it, and for the sources that it was made of; any version of Python.
    """

    def __init__(self, function: Callable[..., Any], constants: Hashable, taps: int) -> None:
        self._kernel, self._taps = _told(function, constants), taps

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

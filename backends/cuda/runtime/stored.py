"""Kernels on disk: binaries and LLVM IR that were compiled on this machine."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from numba.cuda.dispatcher import _Kernel

from wavefilt._version import __version__
from wavefilt.backends import kernel_files

from .target import cuda

if TYPE_CHECKING:
    from numba.cuda.codegen import JITCUDACodegen
    from numba.types import Type

    Types: TypeAlias = tuple[Type, ...]

PACKAGE = Path(__file__).parents[1]


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

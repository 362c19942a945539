"""Extending wavefilt: threshold rules, threshold functions, boundary modes, formats, transforms and backends.

Rules, threshold functions and transforms may also be passed to `wavefilt.denoise` as objects, without registration. The
functions here make them known by name: in `wavefilt.denoise`, in streaming, with Dask and, once the module that
registers them is imported, in the command. Registering a name again replaces the former object, except for formats.
"""

from __future__ import annotations

from collections.abc import Callable

from wavefilt.arrays import Array
from wavefilt.backends.interface import Backend
from wavefilt.backends.registry import BACKENDS
from wavefilt.io import Format, Probe, StreamedFormat, register_format
from wavefilt.thresholding.rules import RULES, Rule
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.transforms import TRANSFORMS, Analysis, Transform
from wavefilt.wavelets.boundary import EXTENSIONS, Terms

__all__ = [
    "Analysis",
    "Backend",
    "Format",
    "Probe",
    "Rule",
    "StreamedFormat",
    "Transform",
    "register_backend",
    "register_format",
    "register_mode",
    "register_rule",
    "register_shrink",
    "register_transform",
]


def register_rule(rule: Rule) -> None:
    """Add a threshold rule under its name."""
    RULES[rule.name] = rule


def register_shrink(name: str, function: Callable[[Array, Array], Array]) -> None:
    """Add a threshold function of coefficients (real or complex, any shape) and thresholds that broadcast against them.

    Compiled backends call it with whole NumPy arrays.
    """
    FUNCTIONS[name] = function


def register_mode(name: str, extension: Callable[[int, int], Terms]) -> None:
    """Add a boundary mode: sample i of the extension of n samples as (j, a, k, b, l, c), a x[j] + b x[k] + c x[l].

    ``i`` is any integer and the indices lie in [0, n). Transforms in this mode run on the reference backend.
    """
    EXTENSIONS[name] = extension


def register_transform(transform: Transform) -> None:
    """Add a transform under its own name; its attribute ``word`` is the value of the option ``transform``.

    It runs on the reference backend.
    """
    TRANSFORMS[transform.name] = transform


def register_backend(name: str, make: Callable[..., Backend]) -> None:
    """Add a backend by a function that makes it, called once with the backend's own options when it is first used.

    ``make`` raises BackendUnavailable, with the package to install, where the backend cannot run. ``backend="auto"``
    never selects it. Transforms, modes and dtypes that it does not support run on the reference backend.
    """
    BACKENDS[name] = make

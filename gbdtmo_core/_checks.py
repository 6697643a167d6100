"""Ranges of parameters, and the check that names the first one outside its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

# What is wanted, in words, and whether a value is that.
Check = tuple[str, Callable[[Any], bool]]


def is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond the largest float
        return False


def integer(low: int, high: int | None = None) -> Check:
    wanted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    return wanted, lambda value: is_integer(value) and value >= low and (high is None or value <= high)


def real(low: float) -> Check:
    return f"a finite number of at least {low:g}", lambda value: is_real(value) and value >= low


def above(low: float) -> Check:
    return f"a finite number above {low:g}", lambda value: is_real(value) and value > low


def one_of(*options: str) -> Check:
    return "one of " + ", ".join(map(repr, options)), lambda value: isinstance(value, str) and value in options


def or_none(check: Check) -> Check:
    return f"None or {check[0]}", lambda value: value is None or check[1](value)


N_JOBS = or_none(("a whole number other than 0", lambda value: is_integer(value) and value != 0))
VERBOSE: Check = ("an integer of at least 0", lambda value: isinstance(value, Integral) and int(value) >= 0)


def check_ranges(params: dict[str, Any], checks: dict[str, Check]) -> None:
    """Raises ValueError for the first of ``params`` that its check refuses."""
    for name, (wanted, accepts) in checks.items():
        if not accepts(params[name]):
            raise ValueError(f"{name} must be {wanted}; got {params[name]!r}.")

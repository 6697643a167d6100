"""Checks of estimator parameters: what was given, what is expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from gbdtmo_core._lib import EXACT_MAX_OUTPUTS

Check = tuple[str, Callable[[Any], bool]]


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond the largest float
        return False


def _integer(low: int, high: int | None = None) -> Check:
    wanted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
    return wanted, lambda value: _is_integer(value) and value >= low and (high is None or value <= high)


def _real(low: float) -> Check:
    return f"a finite number of at least {low:g}", lambda value: _is_real(value) and value >= low


def _above(low: float) -> Check:
    return f"a finite number above {low:g}", lambda value: _is_real(value) and value > low


def _one_of(*options: str) -> Check:
    return "one of " + ", ".join(map(repr, options)), lambda value: isinstance(value, str) and value in options


def _or_none(check: Check) -> Check:
    return f"None or {check[0]}", lambda value: value is None or check[1](value)


# Sizes end where the C core's integers do; depth beyond 64 would need 2^64 rows.
_CHECKS: dict[str, Check] = {
    "n_estimators": _integer(1, 2**31 - 1),
    "learning_rate": _above(0),
    "max_depth": _integer(1, 64),
    "max_leaves": _or_none(_integer(1, 2**31 - 1)),
    "max_bins": _integer(2, 255),
    "min_samples_leaf": _integer(1, 2**31 - 1),
    "reg_lambda": _real(0),
    "reg_alpha": _real(0),
    "min_split_gain": _real(0),
    "top_k": _or_none(_integer(1, 2**31 - 1)),
    "top_k_mode": _one_of("restricted", "unrestricted"),
    "hessian": _one_of("diagonal", "constant", "exact"),
    "tree_output": _one_of("multi", "single"),
    "growth": _one_of("complete", "released"),
    "node_cache": _integer(1, 2**31 - 1),
    "binning": _one_of("quantile", "released"),
    "base_score": _or_none(("a finite number", _is_real)),
    "early_stopping_rounds": _or_none(_integer(1, 2**31 - 1)),
    "histogram_pool_mb": _above(0),
    "n_jobs": _or_none(("a whole number other than 0", lambda value: _is_integer(value) and value != 0)),
    "verbose": ("an integer of at least 0", lambda value: isinstance(value, Integral) and int(value) >= 0),
}


def check_parameters(params: dict[str, Any], metrics: tuple[str, ...]) -> None:
    """Raises ValueError for the first parameter outside its range.

    Parameters
    ----------
    params : dict
        All parameters of an estimator.
    metrics : tuple of str
        What ``eval_metric`` may be besides None.
    """
    for name, (wanted, accepts) in {**_CHECKS, "eval_metric": _or_none(_one_of(*metrics))}.items():
        if not accepts(params[name]):
            raise ValueError(f"{name} must be {wanted}; got {params[name]!r}.")


def check_exact_hessian(params: dict[str, Any], loss: str, n_outputs: int) -> None:
    """Raises ValueError where ``hessian="exact"`` is asked for and means nothing, or nothing that can be computed.

    Parameters
    ----------
    params : dict
        All parameters of an estimator.
    loss : {"squared_error", "softmax", "sigmoid"}
    n_outputs : int
    """
    if params["hessian"] != "exact":
        return
    if loss != "softmax":
        name = {"squared_error": "squared error", "sigmoid": "sigmoid cross-entropy (an indicator matrix y)"}[loss]
        raise ValueError(
            'hessian="exact" is for class labels (softmax). The Hessian of '
            f'{name} is diagonal, so that hessian="diagonal" is exact: use that.'
        )
    alternatives = {
        "top_k": (params["top_k"] is None or params["top_k"] >= n_outputs, "top_k=None"),
        "reg_alpha": (params["reg_alpha"] == 0, "reg_alpha=0"),
        "tree_output": (params["tree_output"] == "multi", 'tree_output="multi"'),
        "growth": (params["growth"] == "complete", 'growth="complete"'),
    }
    for name, (fits, wanted) in alternatives.items():
        if not fits:
            raise ValueError(
                f'hessian="exact" needs {wanted}; got {name}={params[name]!r}, which is defined for the diagonal only. '
                'Change it, or use hessian="diagonal".'
            )
    if n_outputs > EXACT_MAX_OUTPUTS:
        raise ValueError(
            f'hessian="exact" takes at most {EXACT_MAX_OUTPUTS} classes, since its time grows with their cube; got '
            f'{n_outputs}. Use hessian="diagonal".'
        )

"""Checks of the boosted trees' parameters: what was given, what is expected."""

from __future__ import annotations

from typing import Any

from gbdtmo_core._checks import N_JOBS, VERBOSE, Check, above, check_ranges, integer, is_real, one_of, or_none, real
from gbdtmo_core._lib import EXACT_MAX_OUTPUTS

# Sizes end where the C core's integers do; depth beyond 64 would need 2^64 rows.
_CHECKS: dict[str, Check] = {
    "n_estimators": integer(1, 2**31 - 1),
    "learning_rate": above(0),
    "max_depth": integer(1, 64),
    "max_leaves": or_none(integer(1, 2**31 - 1)),
    "max_bins": integer(2, 255),
    "min_samples_leaf": integer(1, 2**31 - 1),
    "reg_lambda": real(0),
    "reg_alpha": real(0),
    "min_split_gain": real(0),
    "top_k": or_none(integer(1, 2**31 - 1)),
    "top_k_mode": one_of("restricted", "unrestricted"),
    "hessian": one_of("diagonal", "constant", "exact"),
    "tree_output": one_of("multi", "single"),
    "growth": one_of("complete", "released"),
    "node_cache": integer(1, 2**31 - 1),
    "binning": one_of("quantile", "released"),
    "base_score": or_none(("a finite number", is_real)),
    "early_stopping_rounds": or_none(integer(1, 2**31 - 1)),
    "histogram_pool_mb": above(0),
    "n_jobs": N_JOBS,
    "verbose": VERBOSE,
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
    check_ranges(params, {**_CHECKS, "eval_metric": or_none(one_of(*metrics))})


def check_top_k(params: dict[str, Any], n_outputs: int) -> None:
    """Raises ValueError where ``top_k`` asks for more outputs than there are, or of trees of one output each.

    Parameters
    ----------
    params : dict
        All parameters of an estimator.
    n_outputs : int
    """
    k = params["top_k"]
    if k is None:
        return
    if k > n_outputs:
        raise ValueError(f"top_k={k} is more than the {n_outputs} outputs; give at most {n_outputs}, or None for all.")
    if params["tree_output"] == "single":
        raise ValueError(
            f'top_k={k} means nothing with tree_output="single", whose leaves hold one output. Use top_k=None, or '
            'tree_output="multi".'
        )


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

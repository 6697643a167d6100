"""Functions that the configs under ``conf/`` may call."""

from collections.abc import Sequence

from omegaconf import OmegaConf

_MODES = ("restricted", "unrestricted")


def max_leaves(max_depth: int) -> int:
    """Return three quarters of the leaves of a full tree (GBDT-MO, Appendix B), at least one."""
    if not isinstance(max_depth, int):
        raise ValueError(f"max_depth must be a whole number, not {max_depth!r}")
    return max(1, int(0.75 * 2**max_depth))


def split_kinds(top_k_grid: Sequence[int]) -> str:
    """Return a sweep over the full split and, for each k, both top-k splits: ``full,restricted-2,unrestricted-2``."""
    return ",".join(["full", *(f"{mode}-{k}" for k in top_k_grid for mode in _MODES)])


def split_top_k(kind: str) -> int | None:
    """Return the k of a kind of split that `split_kinds` names, None for the full split."""
    return None if kind == "full" else int(_mode_and_k(kind)[1])


def split_mode(kind: str) -> str:
    """Return the ``top_k_mode`` of a kind of split; the estimator's default for the full split, which has none."""
    return _MODES[0] if kind == "full" else _mode_and_k(kind)[0]


def _mode_and_k(kind: str) -> tuple[str, str]:
    mode, _, k = str(kind).partition("-")
    if mode not in _MODES or not k.isdecimal():
        raise ValueError(
            f"split must be full or one of {', '.join(_MODES)} with k, such as {_MODES[0]}-4; not {kind!r}"
        )
    return mode, k


def register_resolvers() -> None:
    """Make these functions known to OmegaConf, as in ``${max_leaves:<depth>}``; calling it again changes nothing."""
    for function in (max_leaves, split_kinds, split_top_k, split_mode):
        OmegaConf.register_new_resolver(function.__name__, function, replace=True)

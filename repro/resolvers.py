"""Functions that the configs under ``conf/`` may call."""

from omegaconf import OmegaConf


def max_leaves(max_depth: int) -> int:
    """Return three quarters of the leaves of a full tree (GBDT-MO, Appendix B), at least one."""
    if not isinstance(max_depth, int):
        raise ValueError(f"max_depth must be a whole number, not {max_depth!r}")
    return max(1, int(0.75 * 2**max_depth))


def register_resolvers() -> None:
    """Make ``${max_leaves:<depth>}`` known to OmegaConf; calling it again changes nothing."""
    OmegaConf.register_new_resolver("max_leaves", max_leaves, replace=True)

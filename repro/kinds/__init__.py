"""Kinds of table and figure: a file each, named as ``table.kind`` of an experiment says, with ``pages(evidence)``."""

from importlib import import_module

from repro.kinds.base import Evidence, Page


def pages(kind: str, evidence: Evidence) -> list[Page]:
    """Make the pages of this kind; `repro.plan` has checked that there is one."""
    # By name, so that only a kind that draws or opens models loads what that needs.
    made: list[Page] = import_module(f"{__name__}.{kind}").pages(evidence)
    return made

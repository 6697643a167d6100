"""Evaluation protocols: which rows a model is fitted on and which ones stop it."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from datasets.base import Split

ROWS = ("train", "fit", "validation", "test")


@dataclass(frozen=True)
class Protocol:
    """Names of the parts of a `Split` that a protocol uses; the test part is always the one scored.

    Attributes
    ----------
    name : str
        Name in records and tables.
    fit_rows, stop_rows : str
        Parts that the model is fitted on and that early stopping watches, fields of `datasets.base.Split`.
    """

    name: str
    fit_rows: str
    stop_rows: str

    def __post_init__(self) -> None:
        for part in (self.fit_rows, self.stop_rows):
            if part not in ROWS:
                raise ValueError(f"protocol {self.name!r} names the rows {part!r}; expected one of {', '.join(ROWS)}")

    @property
    def optimistic(self) -> bool:
        """Whether early stopping has seen the rows that are scored."""
        return self.stop_rows == "test"

    @property
    def has_validation(self) -> bool:
        """Whether the validation rows are kept out of fitting, so that a score on them means something."""
        return self.stop_rows == "validation"


SELECTION = Protocol(name="selection", fit_rows="fit", stop_rows="validation")
"""How a setting is chosen under every protocol: fitted and stopped without the test rows."""


def rows(split: Split, part: str) -> NDArray[Any]:
    """Row numbers of one part of `split`."""
    indices: NDArray[Any] = getattr(split, part)
    return indices

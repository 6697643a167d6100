"""Evaluation protocols: which rows a model is fitted on, which ones stop it, and how open settings are chosen."""

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
    fit_rows : str
        Part that the model is fitted on, a field of `datasets.base.Split`.
    stop_rows : str or None
        Part that early stopping watches. None: a protocol for models that are not stopped.
    folds : int
        Into how many parts the rows to fit on are cut to choose what a model's ``select`` leaves open; 0: settings are
        fixed, or, where there are rows to stop on, chosen as `SELECTION` says.
    chosen_by : str or None
        Name of the score by which folds choose. None, or one that the task has not: the task's reported score.
    """

    name: str
    fit_rows: str
    stop_rows: str | None = None
    folds: int = 0
    chosen_by: str | None = None

    def __post_init__(self) -> None:
        for part in (self.fit_rows, self.stop_rows):
            if part is not None and part not in ROWS:
                raise ValueError(f"protocol {self.name!r} names the rows {part!r}; expected one of {', '.join(ROWS)}")
        if self.folds and (self.folds < 2 or self.stop_rows):
            raise ValueError(
                f"protocol {self.name!r} has folds={self.folds!r} and stop_rows={self.stop_rows!r}; expected at least "
                "2 folds and no rows to stop on, or no folds"
            )

    @property
    def optimistic(self) -> bool:
        """Whether early stopping has seen the rows that are scored."""
        return self.stop_rows == "test"

    @property
    def has_validation(self) -> bool:
        """Whether the validation rows are kept out of fitting, so that a score on them means something."""
        return self.stop_rows == "validation"

    @property
    def chooses(self) -> bool:
        """Whether what a model's ``select`` leaves open is chosen; else the model keeps the values it has."""
        return bool(self.stop_rows or self.folds)


SELECTION = Protocol(name="selection", fit_rows="fit", stop_rows="validation")
"""How a setting is chosen under every protocol with rows to stop on: fitted and stopped without the test rows."""


def rows(split: Split, part: str) -> NDArray[Any]:
    """Row numbers of one part of `split`."""
    indices: NDArray[Any] = getattr(split, part)
    return indices

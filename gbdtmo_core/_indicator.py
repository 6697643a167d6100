"""Label sets: from what users pass as y to a 0/1 indicator matrix and the labels of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer

from gbdtmo_core._targets import check_labels

Indicator = NDArray[np.uint8]

_SETS = (set, frozenset)
_FORMS = "an indicator matrix of 0 and 1, (n, n_labels), or a list of label sets, or one label a sample (1-D)"


@dataclass(frozen=True)
class Labels:
    """Label sets as a matrix.

    Attributes
    ----------
    indicator : uint8 array of shape (n, n_labels), C-contiguous
    classes : array of shape (n_labels,)
        The label of each column: sorted labels, or 0 .. n_labels - 1 where y was a matrix, or a frame's column names.
    form : {"matrix", "sets", "single"}
        What y was; "single" is a 1-D y, one label a sample.
    """

    indicator: Indicator
    classes: NDArray[Any]
    form: str

    def take(self, rows: NDArray[np.bool_]) -> Labels:
        """The labels of some rows. A matrix keeps its columns; otherwise labels that do not occur are gone."""
        indicator = self.indicator[rows]
        columns = np.ones(len(self.classes), bool) if self.form == "matrix" else indicator.any(axis=0)
        return Labels(np.ascontiguousarray(indicator[:, columns]), self.classes[columns], self.form)


def read_labels(y: Any) -> Labels:
    """Reads y in any of its forms.

    Parameters
    ----------
    y : array, data frame or sparse matrix of shape (n, n_labels), or sequence of length n
        A matrix of 0 and 1 (or booleans); or a sequence of sets, lists or tuples of labels, as `MultiLabelBinarizer`
        takes them; or one label a sample. Equally long sequences of numbers are a matrix, as NumPy reads them: pass
        sets where they are meant as sets.

    Raises
    ------
    ValueError
        For a matrix of one column or with values other than 0 and 1; for sets of mixed, missing, fractional or
        unhashable labels; for a continuous y.
    """
    if sparse.issparse(y):
        return _from_sparse(y)
    if hasattr(y, "__array__") and not hasattr(y, "ndim"):
        y = np.asarray(y)
    dimensions = getattr(y, "ndim", 1)
    if dimensions == 2:
        labels = _from_matrix(y)
        is_named = labels.form == "matrix" and hasattr(y, "columns")
        return replace(labels, classes=_names(y)) if is_named else labels
    if dimensions != 1:
        raise ValueError(f"y has {dimensions} dimensions; expected {_FORMS}.")
    rows = _rows_with_collections(y)
    if not rows:
        return _from_single(y)
    return _from_matrix(np.asarray(rows)) if _is_matrix(rows) else _from_sets(rows)


def _names(y: Any) -> NDArray[Any]:
    names = np.asarray(y.columns)
    if not y.columns.is_unique:
        raise ValueError(f"y has several columns of one name: {names.tolist()}; name every label once.")
    return names


def encode_like(y: Any, classes: NDArray[Any]) -> Indicator:
    """The indicator matrix of label sets y in the columns of a fitted ``classes``.

    Columns of a frame go by their names; by their places where ``classes`` are 0 .. n_labels - 1.

    Raises
    ------
    ValueError
        As `read_labels`; for a matrix of another width; for a label that ``classes`` lacks.
    """
    labels = read_labels(y)
    if labels.form == "matrix":
        if labels.indicator.shape[1] != len(classes):
            raise ValueError(f"y has {labels.indicator.shape[1]} columns, but training had {len(classes)} labels.")
        if not hasattr(y, "columns") or np.array_equal(classes, np.arange(len(classes))):
            return labels.indicator
    position = {label: column for column, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.classes.tolist() if label not in position]
    if unknown:
        raise ValueError(f"y has labels that training had not: {unknown}.")
    indicator = np.zeros((len(labels.indicator), len(classes)), np.uint8)
    indicator[:, [position[label] for label in labels.classes.tolist()]] = labels.indicator
    return indicator


def _rows_with_collections(y: Any) -> list[Any]:
    """The rows of y where each is a set or a sequence of labels; empty where none is."""
    if not isinstance(y, Sequence) and getattr(getattr(y, "dtype", None), "kind", "") != "O":
        return []
    rows = list(y)
    collections = [_is_collection(row) for row in rows]
    if any(collections) and not all(collections):
        row = collections.index(False)
        raise ValueError(f"y mixes label sets with other things: row {row} is {rows[row]!r}; expected {_FORMS}.")
    return rows if any(collections) else []


def _is_collection(row: Any) -> bool:
    return isinstance(row, (*_SETS, list, tuple)) or (isinstance(row, np.ndarray) and row.ndim > 0)


def _is_matrix(rows: list[Any]) -> bool:
    if any(isinstance(row, _SETS) for row in rows) or len({len(row) for row in rows}) != 1 or not len(rows[0]):
        return False
    return all(isinstance(value, Number | np.bool_) for row in rows for value in row)


def _refuse_one_column() -> None:
    raise ValueError(
        "y is a label matrix of one column: ranking needs two labels at least. If y holds one label a sample (0 and 1 "
        "are then two classes), pass it as a 1-D array: y.ravel()."
    )


def _from_sparse(y: Any) -> Labels:
    matrix = sparse.csr_array(y, copy=True)
    matrix.sum_duplicates()
    return _from_values(matrix.data, matrix.shape, lambda: matrix.astype(np.uint8).toarray())


def _from_matrix(y: Any) -> Labels:
    """Also a column of class labels, which scikit-learn reads with a warning; a column of 0 and 1 is a matrix."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError("y has missing values; drop those rows.")
    values = np.asarray(y)
    if values.shape[1] == 1 and not _is_binary(values):
        return _from_single(values)
    if values.dtype.kind == "O" and all(isinstance(value, Number | np.bool_) for value in values.flat):
        values = values.astype(np.float64)
    return _from_values(values, values.shape, lambda: values.astype(np.uint8))


def _is_binary(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biufO" and bool(np.isin(values, (0, 1)).all())


def _from_values(values: NDArray[Any], shape: tuple[int, ...], convert: Any) -> Labels:
    n, n_labels = shape
    if n == 0 or n_labels == 0:
        raise ValueError(f"y is empty: shape {shape}; expected {_FORMS}.")
    if not _is_binary(values):
        strange = values[~np.isin(values, (0, 1))].ravel()[0]
        raise ValueError(
            f"y of shape {shape} must hold 0 and 1 alone, but has {strange!r}; expected {_FORMS}. For sets of numbers "
            "pass a list of Python sets."
        )
    if n_labels == 1:
        _refuse_one_column()
    return Labels(np.ascontiguousarray(convert()), np.arange(n_labels), "matrix")


def _from_sets(rows: list[Any]) -> Labels:
    for position, row in enumerate(rows):
        try:
            set(row)
        except TypeError as error:
            raise ValueError(f"label set {position} of y, {row!r}, has a label that cannot be hashed.") from error
    _check_label_kinds({label for row in rows for label in row})
    binarizer = MultiLabelBinarizer(sparse_output=True)
    indicator = binarizer.fit_transform(rows).astype(np.uint8).toarray()
    return Labels(np.ascontiguousarray(indicator), binarizer.classes_, "sets")


def _check_label_kinds(labels: set[Any]) -> None:
    kinds = {_kind(label) for label in labels}
    if len(kinds) > 1:
        raise ValueError(f"y mixes labels of different kinds: {', '.join(sorted(kinds))}; use one kind.")
    try:
        sorted(labels)
    except TypeError as error:
        raise ValueError(f"the labels of y cannot be sorted: {error}.") from error


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, Real | np.bool_):
        if not isinstance(label, Integral | np.bool_) and not float(label).is_integer():
            raise ValueError(f"y has the label {label!r}; labels are names or whole numbers, never missing.")
        return "numbers"
    if label is None:
        raise ValueError("y has the label None; labels are names or whole numbers, never missing.")
    return type(label).__name__


def _from_single(y: Any) -> Labels:
    labels = check_labels(y)
    classes, codes = np.unique(labels, return_inverse=True)
    indicator = np.zeros((len(labels), len(classes)), np.uint8)
    indicator[np.arange(len(labels)), codes.ravel()] = 1
    return Labels(indicator, classes, "single")

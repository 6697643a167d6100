"""Data made up in the shape of sets that are not here: the same numbers of rows, columns and outputs, a fixed seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Sample = tuple[NDArray[np.float32], NDArray[np.generic]]

# Images a category in Caltech101: ten large ones, the others fall off to 31.
_LARGE_CLASSES = (800, 798, 435, 435, 239, 200, 128, 123, 119, 114)
_OTHER_CLASSES = (107, 31)
_HOG_BLOCK = 36  # values that a histogram of oriented gradients normalises together
_HOG_CLIP = 0.2
_LABELS_A_ROW = 1.9  # of NUS-WIDE's 81 concepts


def hog_classes(n: int, m: int, d: int, seed: int) -> Sample:
    """Make rows like histograms of oriented gradients, with classes as uneven as Caltech101's.

    Parameters
    ----------
    n, m, d : int
        Rows, columns and classes.
    seed : int

    Returns
    -------
    X : ndarray of float32, shape (n, m)
        Values in [0, 0.5]: blocks of 36 are normalised, clipped at 0.2 and normalised again, as HOG does it.
    y : ndarray of int64, shape (n,)
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(d, size=n, p=_class_shares(d)).astype(np.int64)
    prototypes = rng.gamma(0.6, size=(d, m)).astype(np.float32)
    strength = rng.uniform(0.2, 0.8, size=(n, 1)).astype(np.float32)  # how clearly a row shows its class
    raw = strength * prototypes[y] + (1 - strength) * rng.gamma(0.6, size=(n, m)).astype(np.float32)
    return _normalise_blocks(raw), y


def _class_shares(d: int) -> NDArray[np.float64]:
    first, last = _OTHER_CLASSES
    counts = np.concatenate([_LARGE_CLASSES, np.geomspace(first, last, max(d - len(_LARGE_CLASSES), 0))])[:d]
    return np.asarray(counts / counts.sum())


def _normalise_blocks(raw: Array) -> Array:
    for start in range(0, raw.shape[1], _HOG_BLOCK):
        block = raw[:, start : start + _HOG_BLOCK]
        block /= np.linalg.norm(block, axis=1, keepdims=True) + 1e-6
        np.minimum(block, _HOG_CLIP, out=block)
        block /= np.linalg.norm(block, axis=1, keepdims=True) + 1e-6
    return raw


def labelled_textures(n: int, m: int, d: int, seed: int) -> Sample:
    """Make dense continuous rows, and 0/1 labels of which a row has 1.9 on average, as in NUS-WIDE.

    Returns
    -------
    X : ndarray of float32, shape (n, m)
        Correlated columns of unit scale.
    y : ndarray of uint8, shape (n, d)
        The most frequent label marks about a fifth of the rows, the rarest a thousandth.
    """
    rng = np.random.default_rng(seed)
    n_factors = max(2, m // 4)
    factors = rng.standard_normal((n, n_factors), dtype=np.float32)
    loadings = rng.standard_normal((n_factors, m), dtype=np.float32) / np.float32(np.sqrt(n_factors))
    X = factors @ loadings
    X += 0.7 * rng.standard_normal((n, m), dtype=np.float32)
    weights = rng.standard_normal((n_factors, d), dtype=np.float32) / np.float32(np.sqrt(n_factors))
    scores = np.tanh(factors) @ weights
    scores += 0.6 * rng.standard_normal((n, d), dtype=np.float32)
    rates = 1.0 / (1.0 + np.arange(d)) ** 0.9
    rates = np.minimum(rates * min(_LABELS_A_ROW, d / 4) / rates.sum(), 0.5)
    thresholds = np.array([np.quantile(column, 1 - rate) for column, rate in zip(scores.T, rates, strict=True)])
    return X, (scores > thresholds).astype(np.uint8)


def projected_targets(n: int, m: int, d: int, seed: int) -> Sample:
    """Make uniform columns, and targets that are smooth functions of all of them plus noise.

    Returns
    -------
    X : ndarray of float32, shape (n, m)
        Uniform in [-1, 1].
    y : ndarray of float32, shape (n, d)
        sin(x W) with normal noise of a tenth.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, m)).astype(np.float32)
    weights = rng.standard_normal((m, d), dtype=np.float32) / np.float32(np.sqrt(m / 8))
    y = np.sin(X @ weights)
    y += 0.1 * rng.standard_normal((n, d), dtype=np.float32)
    return X, y.astype(np.float32)


KINDS = {
    "hog_classes": (hog_classes, "multiclass"),
    "labelled_textures": (labelled_textures, "multilabel"),
    "projected_targets": (projected_targets, "regression"),
}
"""Kind of made-up data: its maker, and its task."""

"""Data made up in the shape of sets that are not here: the same numbers of rows, columns and outputs, a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float32]
Sample = tuple[Any, NDArray[np.generic]]

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


def ranked_labels(n: int, m: int, d: int, seed: int, labels_a_row: int = 4) -> Sample:
    """Make rows of unit length, and for each the labels with the largest of noisy linear scores.

    Returns
    -------
    X : ndarray of float32, shape (n, m)
    y : ndarray of uint8, shape (n, d)
        `labels_a_row` ones a row; linear scores rank about four pairs of five as the noisy ones do.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.standard_normal((m, d), dtype=np.float32)
    scores += 0.75 * rng.standard_normal((n, d), dtype=np.float32)
    return X, _marked(np.argsort(-scores, axis=1)[:, :labels_a_row], d)


def labelled_words(n: int, m: int, d: int, seed: int, labels_a_row: float = 2.4, words_a_row: int = 68) -> Sample:
    """Make 0/1 rows like documents: words of their labels' topics among the generally frequent ones.

    Returns
    -------
    X : CSR array of float32, shape (n, m)
        About `words_a_row` ones a row.
    y : ndarray of uint8, shape (n, d)
        At least one label a row, `labels_a_row` on average (a shifted Poisson number); few labels are frequent.
    """
    rng = np.random.default_rng(seed)
    label_shares = _falling(d, 0.7)
    word_shares = _falling(m, 0.6)
    topics = rng.choice(m, size=(d, max(1, m // 40)), p=word_shares)
    sizes = np.minimum(1 + rng.poisson(labels_a_row - 1, size=n), d - 1)
    labels = [rng.choice(d, size=size, replace=False, p=label_shares) for size in sizes]
    general = rng.choice(m, size=(n, words_a_row), p=word_shares)
    of_topics = np.stack([rng.choice(topics[own].ravel(), size=words_a_row) for own in labels])
    words = np.where(rng.random((n, words_a_row)) < 0.3, of_topics, general)
    rows = np.repeat(np.arange(n), words_a_row)
    X = sparse.csr_array((np.ones(words.size, dtype=np.float32), (rows, words.ravel())), shape=(n, m))
    X.data[:] = 1.0  # a word that came twice
    y = np.zeros((n, d), dtype=np.uint8)
    y[np.repeat(np.arange(n), sizes), np.concatenate(labels)] = 1
    return X, y


def _falling(count: int, exponent: float) -> NDArray[np.float64]:
    shares = 1.0 / (1.0 + np.arange(count)) ** exponent
    return np.asarray(shares / shares.sum())


def _marked(labels: NDArray[np.int64], d: int) -> NDArray[np.uint8]:
    y = np.zeros((len(labels), d), dtype=np.uint8)
    np.put_along_axis(y, labels, 1, axis=1)
    return y


KINDS: dict[str, tuple[Callable[..., Sample], str]] = {
    "hog_classes": (hog_classes, "multiclass"),
    "labelled_textures": (labelled_textures, "multilabel"),
    "projected_targets": (projected_targets, "regression"),
    "ranked_labels": (ranked_labels, "multilabel"),
    "labelled_words": (labelled_words, "multilabel"),
}
"""Kind of made-up data: its maker, and its task."""

"""The size of NUS-WIDE without its features: the official labels, and made-up features that carry some signal.

For measuring seconds alone. A score on it would say nothing, so the set is marked `Dataset.timing_only`, and no run on
it is recorded.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from .base import Dataset, FormatError, published_split
from .fetch import DataFile, checksums, describe_sources, locate
from .nus_wide import CONCEPTS, N_FEATURES, N_TEST, N_TRAIN, require_official_labels

LABEL_FILE = DataFile(
    "nus_wide/nus_wide_labels81.npz", "2ca588e4fa916e3650bbfa0ac6bd0ac3f5a23e425deb674bf682f9d40c7adaf8", origins=()
)
NOISE = 9.0  # standard deviation beside a signal of about 1: a linear model finds a label of 44 % of the rows


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the labels and make the features up, the same ones every time."""
    found = locate("nus_wide_shape", ((LABEL_FILE,),), cache_dir=cache_dir, download=download)
    with np.load(found[0].path, allow_pickle=False) as arrays:
        labels = np.concatenate([arrays["train"], arrays["test"]])
    if labels.shape != (N_TRAIN + N_TEST, len(CONCEPTS)):
        raise FormatError(f"{found[0].path} holds labels of shape {labels.shape}")
    require_official_labels(labels, str(found[0].path))
    return Dataset(
        name="nus_wide_shape",
        X=make_features(labels),
        y=labels,
        task="multilabel",
        feature_names=tuple(f"made_up{i}" for i in range(N_FEATURES)),
        target_names=CONCEPTS,
        source=f"labels: {describe_sources(found)}; features: made up",
        sha256=checksums(found),
        fixed_split=published_split(N_TRAIN, N_TEST),
        timing_only=True,
    )


def make_features(labels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Project the labels at random and add noise; every row is scaled to length 1, as cVLAD+ is."""
    random = np.random.RandomState(0)
    directions = random.standard_normal((labels.shape[1], N_FEATURES)).astype(np.float32)
    X = np.empty((len(labels), N_FEATURES), np.float32)
    for start in range(0, len(labels), 4096):
        rows = slice(start, start + 4096)
        X[rows] = NOISE * random.standard_normal(X[rows].shape)
        X[rows] += labels[rows] @ directions
        X[rows] /= np.linalg.norm(X[rows], axis=1, keepdims=True)
    return X

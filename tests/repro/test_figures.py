"""Drawings show what they are given, and the same data give the same bytes."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from gbdtmo_core import GBDTMOClassifier
from repro import figures
from repro.kinds import split_kinds

GRID = pd.DataFrame(
    {
        "rate": ["0.1", "0.1", "0.5", "0.5"],
        "depth": ["4", "10", "4", "10"],
        "metric": "accuracy",
        "validation_mean": [60.0, 61.0, np.nan, 50.0],
        "chosen": [False, True, False, False],
    }
)
CURVES = pd.DataFrame(
    [
        {"dataset": "d", "model": model, "part": part, "metric": "rmse", "round": number, "value": 1 / number}
        for model in ("a", "b")
        for part in ("test", "train")
        for number in (1, 2, 3)
    ]
)


def iris_trees() -> dict[str, bytes]:
    data = load_iris()
    trees = {}
    for kind in ("single", "multi"):
        model = GBDTMOClassifier(n_estimators=1, max_depth=2, tree_output=kind).fit(data.data, data.target)
        trees[kind] = list(model.trees_)
    return figures.tree_rows(trees, data.feature_names, list(data.target_names))


def stumps() -> dict[str, bytes]:
    trees = {kind: split_kinds.stump(**parameters) for kind, parameters in split_kinds.KINDS.items()}
    return figures.split_panels(trees, split_kinds.Y)


def regions() -> dict[str, bytes]:
    areas = {"upper": np.ones((4, 4, 2), int), "lower": np.zeros((4, 4, 2), int)}
    line = ((0.0, 0.0), (1.0, 1.0))
    return figures.label_regions(areas, np.array([[0.2, 0.7]]), np.array([[1, 1]]), ["red", "blue"], [line], 2)


DRAWINGS: dict[str, tuple[Callable[[], dict[str, bytes]], list[str]]] = {
    "surfaces": (
        lambda: figures.surfaces({"yeast, m": GRID}, ["rate", "depth"], {"yeast, m": (0.1, 4)}),
        ["yeast, m", "rate", "depth", "0.5", "10", "validation accuracy %"],
    ),
    "curves": (lambda: figures.curves(CURVES, ["rmse"], {"rmse": "RMSE"}), ["d", "round", "RMSE", "a", "b"]),
    "trees": (iris_trees, ["single", "multi", "setosa", "versicolor", "petal length (cm)"]),
    "regions": (regions, ["upper", "lower", "no label", "red, blue"]),
    "splits": (stumps, ["non-sparse", "restricted", "unrestricted", "sample 4", "output 3", "2.25"]),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_holds_its_words_and_is_the_same_each_time(name: str) -> None:
    draw, words = DRAWINGS[name]
    first, second = draw(), draw()
    assert first == second
    assert first["png"].startswith(b"\x89PNG")
    texts = set(re.findall(r">([^<>]+)</(?:text|tspan)>", first["svg"].decode()))
    assert set(words) <= texts

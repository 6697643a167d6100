"""The public view of trees: walking it gives what prediction gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor, Tree, load_model
from tests.core.support import FloatArray
from tests.core.test_prediction import SETTINGS, D, _fit, _rows


def walked(model: Any, X: FloatArray, last_round: int) -> FloatArray:
    """Raw scores of a plain walk, row by row, through the used trees of the first rounds."""
    scores = np.tile(model.base_score_, (len(X), 1))
    for tree in model.trees_:
        if not tree.used or tree.round > last_round:
            continue
        for row, x in enumerate(X):
            node = 0
            while tree.feature[node] >= 0:
                value = x[tree.feature[node]]
                goes_left = tree.missing_left[node] if np.isnan(value) else value <= tree.threshold[node]
                node = (tree.left if goes_left else tree.right)[node]
            columns = slice(None) if tree.output < 0 else slice(tree.output, tree.output + 1)
            scores[row, columns] += tree.value[node]
    return scores


@pytest.mark.parametrize("name", SETTINGS)
def test_walking_gives_the_staged_predictions(name: str) -> None:
    model = _fit(name)
    X = _rows(3, 40, missing=SETTINGS[name][1].get("growth") != "released")
    stages = model.staged_predict(X) if isinstance(model, GBDTMORegressor) else model.staged_decision_function(X)
    stages = list(stages)
    for number in {1, 2, len(stages)}:
        np.testing.assert_array_equal(walked(model, X, number), stages[number - 1])


@pytest.mark.parametrize("name", SETTINGS)
def test_each_tree_is_whole(name: str) -> None:
    model = _fit(name)
    assert len(model.trees_) == len(model.n_leaves_)
    X = _rows(1, missing=SETTINGS[name][1].get("growth") != "released")[:200]
    used = sum(tree.used for tree in model.trees_)
    assert repr(model.trees_) == f"<{len(model.trees_)} trees, {used} of them used for prediction>"
    unassigned = []
    for number, tree in enumerate(model.trees_):
        assert tree.output == model.tree_output_[number]
        assert np.count_nonzero(tree.is_leaf & ~tree.unassigned) == model.n_leaves_[number]
        assert np.isnan(tree.value).all(axis=1).tolist() == (~tree.is_leaf).tolist()
        # Every node but the root is the child of one node that comes before it.
        parents = np.flatnonzero(~tree.is_leaf)
        children = np.concatenate([tree.left[parents], tree.right[parents]])
        assert sorted(children) == list(range(1, len(tree.feature)))
        assert (children > np.concatenate([parents, parents])).all()
        assert tree.depth.max() <= model.max_depth
        unassigned.append(np.mean(tree.unassigned[tree.apply(X)]))
    np.testing.assert_allclose(unassigned, model.unassigned_fraction_, atol=1e-12)


def test_apply_agrees_with_the_plain_walk() -> None:
    model = _fit("regression")
    X = _rows(5, 50)
    scores = np.tile(model.base_score_, (len(X), 1))
    for tree in model.trees_:
        scores += tree.value[tree.apply(X)]
    np.testing.assert_array_equal(scores, model.predict(X))


def test_a_split_known_by_hand() -> None:
    # Gradients at base score 0 are -y: left sums (-2, 0) of two rows, right (-8, -6): values 2/3, 0 and 8/3, 2
    # with reg_lambda 1; half of them with a learning rate of one half. The edge lies midway between 1 and 4.
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    y = np.array([[1.0, 0.0], [1.0, 0.0], [4.0, 3.0], [4.0, 3.0]])
    model = GBDTMORegressor(n_estimators=1, learning_rate=0.5, max_depth=1, min_samples_leaf=1, base_score=0.0).fit(
        X, y
    )
    (tree,) = model.trees_
    assert (tree.round, tree.output, tree.used) == (1, -1, True)
    assert tree.feature.tolist() == [0, -1, -1]
    assert tree.threshold[0] == 2.5
    assert (tree.left[0], tree.right[0]) == (1, 2)
    np.testing.assert_allclose(tree.value[1:], [[1 / 3, 0], [4 / 3, 1]])
    assert tree.depth.tolist() == [0, 1, 1]


def test_a_node_that_parts_missing_values() -> None:
    X = np.array([[1.0], [1.0], [np.nan], [np.nan]])
    model = GBDTMORegressor(n_estimators=1, min_samples_leaf=1).fit(X, [0.0, 0.0, 1.0, 1.0])
    (tree,) = model.trees_
    assert tree.threshold[0] == np.inf
    assert not tree.missing_left[0]
    assert tree.apply([[7.0], [np.nan]]).tolist() == [tree.left[0], tree.right[0]]


def test_trees_are_a_sequence() -> None:
    trees = _fit("single").trees_
    assert isinstance(trees[-1], Tree)
    assert [tree.output for tree in trees[:D]] == list(range(D))
    assert len(list(trees)) == len(trees)
    with pytest.raises(IndexError):
        trees[len(trees)]


def test_a_loaded_model_has_the_same_trees(tmp_path: Any) -> None:
    model = _fit("stopped")
    model.save_model(tmp_path / "m.gbdtmo")
    for ours, theirs in zip(model.trees_, load_model(tmp_path / "m.gbdtmo").trees_, strict=True):
        assert ours.used == theirs.used
        np.testing.assert_array_equal(ours.value, theirs.value)
        np.testing.assert_array_equal(ours.threshold, theirs.threshold)


def test_without_training_there_are_no_trees() -> None:
    with pytest.raises(NotFittedError):
        _ = GBDTMOClassifier().trees_

"""Gradient boosted decision trees for multiple outputs (GBDT-MO, arXiv 1909.04373), with scikit-learn estimators."""

from gbdtmo_core._trees import Tree
from gbdtmo_core.binary_svm import BinarySVMClassifier
from gbdtmo_core.boosting import GBDTMOClassifier, GBDTMORegressor
from gbdtmo_core.persistence import load_model
from gbdtmo_core.ranksvm import RankSVMClassifier

__all__ = ["BinarySVMClassifier", "GBDTMOClassifier", "GBDTMORegressor", "RankSVMClassifier", "Tree", "load_model"]

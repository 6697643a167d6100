"""Learning many outputs at once, with scikit-learn estimators: boosted trees and rankings of labels.

GBDT-MO: Zhang & Jung, arXiv 1909.04373. Rank-SVM and its rivals: Elisseeff & Weston, NeurIPS 2001.
"""

from gbdtmo_core._trees import Tree
from gbdtmo_core.binary_svm import BinarySVMClassifier
from gbdtmo_core.boostexter import BoosTexterClassifier
from gbdtmo_core.boosting import GBDTMOClassifier, GBDTMORegressor
from gbdtmo_core.persistence import load_model
from gbdtmo_core.ranksvm import RankSVMClassifier

__version__ = "0.1.0"

__all__ = [
    "BinarySVMClassifier",
    "BoosTexterClassifier",
    "GBDTMOClassifier",
    "GBDTMORegressor",
    "RankSVMClassifier",
    "Tree",
    "load_model",
]

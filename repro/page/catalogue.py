"""What the report page shows, in its order: each published table with the words above it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A published table or figure.

    Attributes
    ----------
    name : str
        Of its files under ``results/``.
    title, about : str
        Heading, and what a reader should know before the numbers.
    command : str
        What makes it; empty where that is not known.
    paper : str
        File under ``results/paper`` with the published values beside it, without ending; empty if there is none.
    """

    name: str
    title: str
    about: str
    command: str
    paper: str = ""


@dataclass(frozen=True)
class Part:
    """A part of the page."""

    title: str
    entries: tuple[Entry, ...]


PARTS = (
    Part(
        "Scores",
        (
            Entry(
                "table5",
                "Table V: real data sets",
                "Every method on every data set at hand, with the settings of Tables IX and XI.",
                "make reproduce-table5",
                "table5",
            ),
            Entry(
                "table3",
                "Table III: synthetic data sets",
                "One tree for all outputs against a tree an output.",
                "make reproduce-table3",
                "table3",
            ),
            Entry(
                "table7",
                "Table VII: scores of top-k splits",
                "Leaves that keep only the k best outputs.",
                "make reproduce-table7",
                "table7",
            ),
            Entry(
                "table7_half_rate",
                "Table VII's MNIST-inpainting at half the rate",
                "Some of the missed cells are matched so, and others no longer are.",
                "make experiment EXPERIMENT=table7_half_rate",
                "table7",
            ),
            Entry(
                "table8",
                "Table VIII: exact Hessian against its diagonal",
                "Softmax's whole Hessian in splits and leaves, beside the diagonal that the method uses otherwise.",
                "make reproduce-table8",
                "table8",
            ),
            Entry(
                "yeast_splits",
                "Yeast on a hundred splits",
                "How much Yeast's column of Table V owes to its ten random splits.",
                "make experiment EXPERIMENT=yeast_splits",
                "table5",
            ),
            Entry(
                "table5_variants",
                "Missed cells of Table V with other inputs and bins",
                "Yeast by the authors' scripts, Caltech101 by the HOG of OpenCV, each with three numbers of bins.",
                "make experiment EXPERIMENT=table5_variants",
                "table5",
            ),
            Entry(
                "yeast_sparse",
                "GBDT-sparse with second derivatives",
                "The paper does not say which version it ran; this one is nearer to its number of trees.",
                "make experiment EXPERIMENT=yeast_sparse",
                "table5",
            ),
            Entry(
                "released",
                "The released program's own rules",
                "Growth, binning and stopping as the authors' released program does them, in our core.",
                "make experiment EXPERIMENT=released",
                "table5",
            ),
            Entry(
                "ablation",
                "Released growth beside complete trees",
                "Rows without a leaf, scores and rounds: is the slow convergence the method's or the program's?",
                "make ablation",
            ),
            Entry(
                "protocol_cost",
                "What stopping on the test rows is worth",
                "The paper's protocol less the holdout protocol, a row a cell of Table V.",
                "make protocol-cost",
            ),
        ),
    ),
    Part(
        "Rank-SVM: rankings and sets of labels",
        (
            Entry(
                "ranksvm_table",
                "Elisseeff and Weston's gene table",
                "At every degree of the kernel: what the published values can be made with, and what folds choose.",
                "make ranksvm-table",
                "ranksvm",
            ),
            Entry(
                "families",
                "Kernel machines beside boosting",
                "Both families on the yeast genes and on scene, compared on the same test rows.",
                "make families",
            ),
            Entry(
                "ranksvm_toy",
                "The toy problem",
                "Three labels in a square, one always there: what a ranking can express and one SVM a label cannot.",
                "make ranksvm-toy",
                "ranksvm_toy",
            ),
        ),
    ),
    Part(
        "Is the difference more than chance?",
        (
            Entry(
                "significance",
                "Tests over seeds and over data sets",
                "The paper's confidence, the corrected test beside it, ranks, and the critical-difference diagram.",
                "make significance",
                "table5",
            ),
            Entry(
                "table12",
                "Table XII: confidence",
                "How sure it is that GBDT-MO is better, computed as the paper does, and with the correction.",
                "make table12",
                "table12",
            ),
        ),
    ),
    Part(
        "Data, settings and sizes",
        (
            Entry(
                "table4",
                "Table IV: the data sets as loaded",
                "Rows, features and outputs beside the published ones.",
                "make reproduce-table4",
                "table4",
            ),
            Entry(
                "table9",
                "Table IX: learning rate and depth",
                "The grid search on validation rows, beside the published choice.",
                "make reproduce-table9",
                "table9",
            ),
            Entry(
                "table9_large",
                "Table IX on the larger sets",
                "A part of the grid, on the sets where all of it would take days.",
                "make reproduce-table9-large",
                "table9",
            ),
            Entry(
                "table10",
                "Table X: trees in the best model",
                "How many trees prediction adds up.",
                "make reproduce-table10",
                "table10",
            ),
        ),
    ),
    Part(
        "Figures",
        (
            Entry(
                "figure1",
                "Figure 1: first trees on Yeast",
                "What a tree for all outputs and a tree an output look like.",
                "make figure1",
            ),
            Entry("figure2", "Figure 2: three kinds of split", "On four samples and three outputs.", "make figure2"),
            Entry(
                "figure3",
                "Figure 3: curves on the synthetic sets",
                "Scores after each round, and at fixed rounds.",
                "make figure3",
            ),
            Entry(
                "figure4",
                "Figure 4: curves on MNIST and Caltech101",
                "Scores after each round and at fixed rounds, the released program's growth among them.",
                "make figure4",
            ),
        ),
    ),
    Part(
        "Speed",
        (
            Entry(
                "figure5",
                "Figure 5: seconds a round",
                "Four shapes, beside XGBoost, LightGBM, CatBoost and the released program.",
                "make figure5",
            ),
            Entry("inference", "Inference", "Milliseconds a round over the test rows.", "make figure5"),
            Entry(
                "table6",
                "Table VI: seconds of top-k splits",
                "Seconds a round; the paper's machine was another one.",
                "make reproduce-table6",
                "table6",
            ),
            Entry(
                "bench",
                "The whole benchmark",
                "Each promise of the core beside what was measured, memory, and how cost grows.",
                "make bench",
                "table6",
            ),
            Entry(
                "ranksvm_scaling",
                "Rank-SVM: time and memory",
                "Each promise of its solver beside what was measured; growth beside Frank-Wolfe and one-vs-rest SVCs.",
                "make ranksvm-scaling",
            ),
        ),
    ),
)


def further(names: list[str]) -> Part:
    """Make a part of what is published and not named above."""
    return Part("Further tables", tuple(Entry(name, name.replace("_", " "), "", "") for name in names))

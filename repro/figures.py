"""Figures from data frames: the only place that draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BytesIO, StringIO
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

# Text stays text, and the same data give the same bytes.
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "gbdtmo", "font.size": 9}


def round_bars(frame: pd.DataFrame, titles: Mapping[str, str], marked: set[str]) -> dict[str, bytes]:
    """Draw seconds a round on a logarithmic axis, as Fig. 5 of the paper: a panel a shape, a bar a model and threads.

    Parameters
    ----------
    frame : DataFrame
        ``shape``, ``model``, ``threads``, ``seconds``.
    titles : mapping
        Title of each shape.
    marked : set of str
        Shapes of made-up data; their titles get a star.

    Returns
    -------
    dict of str to bytes
        The drawing by file ending, ``png`` and ``svg``.
    """
    shapes = list(dict.fromkeys(frame["shape"]))
    models = list(dict.fromkeys(frame["model"]))
    threads = sorted(frame["threads"].unique())
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(2.6 * len(shapes) + 1, 3.6), layout="constrained")
        for panel, shape in enumerate(shapes, 1):
            axes = figure.add_subplot(1, len(shapes), panel)
            for place, n in enumerate(threads):
                own = frame[(frame["shape"] == shape) & (frame["threads"] == n)].set_index("model")["seconds"]
                width = 0.8 / len(threads)
                left = [index + place * width for index in range(len(models))]
                heights = [own.get(model, float("nan")) for model in models]
                axes.bar(left, heights, width, label=f"{n} thread{'s' if n > 1 else ''}")
            axes.set_yscale("log")
            smallest = frame.loc[frame["shape"] == shape, "seconds"].min()
            axes.set_ylim(bottom=10 ** math.floor(math.log10(0.9 * smallest)))  # bars start at a whole decade
            middles = [index + 0.4 - 0.4 / len(threads) for index in range(len(models))]
            axes.set_xticks(middles, models, rotation=60, ha="right")
            axes.set_title(titles[shape] + ("*" if shape in marked else ""))
            axes.grid(axis="y", which="both", alpha=0.3)
            if panel == 1:
                axes.set_ylabel("seconds a round")
                axes.legend()
        return _rendered(figure)


def growth_bars(growth: pd.DataFrame, bound: float) -> dict[str, bytes]:
    """Draw the time of doubled sizes over the base's, with the bound.

    Parameters
    ----------
    growth : DataFrame
        ``variant``, ``ratio``.
    bound : float
        Largest ratio that holds.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.5, 3), layout="constrained")
        axes = figure.add_subplot()
        axes.bar(list(growth["variant"]), list(growth["ratio"]))
        axes.axhline(2, color="black", linewidth=0.8, label="twice: Tables I and II")
        axes.axhline(bound, color="firebrick", linewidth=0.8, linestyle="--", label=f"bound: {bound:g}")
        axes.set_ylabel("time / base")
        axes.set_xlabel("doubled alone")
        axes.legend(loc="lower left")
        return _rendered(figure)


def critical_differences(panels: Mapping[str, tuple[pd.Series, pd.DataFrame, float]], alpha: float) -> dict[str, bytes]:
    """Draw critical-difference diagrams (Demšar 2006), one below the other.

    Parameters
    ----------
    panels : mapping
        Title to mean rank of each model, p value of each pair, and critical difference.
    alpha : float
        Models whose p value is not below it are joined by a bar.
    """
    from scikit_posthocs import critical_difference_diagram  # loads seaborn, which no other figure needs

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 2.4 * len(panels)), layout="constrained")
        for place, (title, (ranks, p_values, distance)) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(len(panels), 1, place)
            # Numbers stand for the names: the library keeps sets, which have another order of names in each process.
            numbers = range(len(ranks))
            drawn = critical_difference_diagram(
                pd.Series(ranks.to_numpy(), index=numbers),
                pd.DataFrame(p_values.loc[ranks.index, ranks.index].to_numpy(), index=numbers, columns=numbers),
                alpha=alpha,
                ax=axes,
                label_fmt_left="{label}",
                label_fmt_right="{label}",
                elbow_props={"color": "black", "linewidth": 0.8},
                text_h_margin=0.03,
            )
            for text in drawn["labels"]:
                model = ranks.index[int(text.get_text())]
                text.set_text(f"{model} ({ranks[model]:.2f})")
            best = ranks.min()
            axes.plot([best, best + distance], [1.8, 1.8], color="black", marker="|")  # above the ticks' labels
            axes.text(best + distance, 1.8, f"  critical difference {distance:.2f}", va="center")
            axes.set_title(title, loc="left")
        return _rendered(figure)


def _rendered(figure: Figure) -> dict[str, bytes]:
    png, svg = BytesIO(), StringIO()
    figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
    figure.savefig(svg, format="svg", metadata={"Date": None})
    return {"png": png.getvalue(), "svg": svg.getvalue().encode()}

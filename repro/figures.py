"""Figures from data frames: the only place that draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from repro.tables import higher_is_better, metric_title

if TYPE_CHECKING:
    from gbdtmo_core import Tree

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
                figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=len(threads))
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


def log_log_panels(frame: pd.DataFrame) -> dict[str, bytes]:
    """Draw values over sizes, both axes logarithmic: a panel a title, a line a model.

    Parameters
    ----------
    frame : DataFrame
        ``panel`` (a title of the form "value over size"), ``model``, ``size``, ``value``, sizes ascending.
    """
    titles, models = list(dict.fromkeys(frame["panel"])), list(dict.fromkeys(frame["model"]))
    columns = min(3, len(titles))
    lines = math.ceil(len(titles) / columns) if titles else 0
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(3.6 * max(columns, 1), 3 * max(lines, 1)), layout="constrained")
        for place, title in enumerate(titles, 1):
            axes = figure.add_subplot(lines, columns, place)
            own = frame[frame["panel"] == title]
            for model, line in own.groupby("model", sort=False):
                axes.plot(line["size"], line["value"], marker="o", color=f"C{models.index(model)}", label=str(model))
            value, _, size = title.partition(" over ")
            axes.set(xscale="log", yscale="log", xlabel=size, ylabel=value)
            measured = sorted(set(own["size"]))
            axes.set_xticks(measured, [f"{one:,g}" for one in measured], rotation=40, ha="right")
            axes.set_xticks([], minor=True)
            axes.grid(which="both", alpha=0.3)
            axes.legend()
        return _rendered(figure)


def surfaces(
    tables: Mapping[str, pd.DataFrame],
    settings: Sequence[str],
    published: Mapping[str, tuple[float, float] | None] | None = None,
) -> dict[str, bytes]:
    """Draw validation scores over two settings as heat maps, a panel a title; brighter is better.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        See `repro.tables.grid`; the chosen setting gets a star.
    settings : sequence of str
        Columns with the two settings: rows, then columns of the map.
    published : mapping, optional
        Setting that gets a square, by title.
    """
    columns = min(4, len(tables))
    lines = math.ceil(len(tables) / columns)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.2 * columns, 2.4 * lines + 0.4), layout="constrained")
        for place, (title, table) in enumerate(tables.items(), 1):
            axes = figure.add_subplot(lines, columns, place)
            _draw_surface(axes, table, settings, (published or {}).get(title))
            axes.set_title(title)
        return _rendered(figure)


def _draw_surface(
    axes: Axes, table: pd.DataFrame, settings: Sequence[str], published: tuple[float, float] | None
) -> None:
    metric = table["metric"].dropna().iloc[0]
    numbers = table.assign(**{name: table[name].astype(float) for name in settings})
    values = numbers.pivot_table(index=settings[0], columns=settings[1], values="validation_mean", dropna=False)
    shown = axes.imshow(values, aspect="auto", cmap="viridis" if higher_is_better(metric) else "viridis_r")
    axes.get_figure().colorbar(shown, ax=axes, label=f"validation {metric_title(metric)}")  # type: ignore[union-attr]
    axes.set_xticks(range(len(values.columns)), [f"{value:g}" for value in values.columns])
    axes.set_yticks(range(len(values.index)), [f"{value:g}" for value in values.index])
    axes.set_xlabel(settings[1].replace("_", " "))
    axes.set_ylabel(settings[0].replace("_", " "))
    chosen = [tuple(row) for row in numbers.loc[numbers["chosen"], list(settings)].to_numpy()]
    for points, marker, size in ((chosen, "*", 110), ([published] if published else [], "s", 180)):
        for y, x in points:
            if y in values.index and x in values.columns:
                at = values.columns.get_loc(x), values.index.get_loc(y)
                axes.scatter(*at, marker=marker, s=size, facecolors="none", edgecolors="red", linewidths=1.4)


def curves(frame: pd.DataFrame, metrics: Sequence[str], titles: Mapping[str, str]) -> dict[str, bytes]:
    """Draw scores after each round: a row of panels a data set, a column a metric, a colour a model.

    Parameters
    ----------
    frame : DataFrame
        See `repro.kinds.curves.curve_frame`.
    metrics : sequence of str
    titles : mapping
        Axis title of each metric.
    """
    sets, models = list(dict.fromkeys(frame["dataset"])), list(dict.fromkeys(frame["model"]))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5 * len(metrics), 3.2 * len(sets)), layout="constrained")
        for place, (dataset, metric) in enumerate(((d, m) for d in sets for m in metrics), 1):
            axes = figure.add_subplot(len(sets), len(metrics), place)
            own = frame[(frame["dataset"] == dataset) & (frame["metric"] == metric)]
            for (model, part), curve in own.groupby(["model", "part"], sort=False):
                style: Any = (
                    {"linestyle": "-", "label": model} if part == "test" else {"linestyle": "--", "linewidth": 0.8}
                )
                axes.plot(curve["round"], curve["value"], color=f"C{models.index(model)}", **style)
            if not higher_is_better(metric):
                axes.set_yscale("log")
            axes.set(title=dataset, xlabel="round", ylabel=titles[metric])
            axes.grid(alpha=0.3)
            axes.legend()
        return _rendered(figure)


def tree_rows(
    trees: Mapping[str, Sequence[Tree]], feature_names: Sequence[str], target_names: Sequence[str]
) -> dict[str, bytes]:
    """Draw trees, those of a title in a row of panels (five at most) below its name.

    Parameters
    ----------
    trees : mapping of str to sequence of Tree
    feature_names, target_names : sequence of str
    """
    columns = 5
    heights = [math.ceil(len(own) / columns) for own in trees.values()]
    with mpl.rc_context({**_STYLE, "font.size": 7}):
        figure = Figure(figsize=(14, 2.6 * sum(heights)))
        parts = np.atleast_1d(figure.subfigures(len(trees), 1, height_ratios=heights))
        for part, (title, own) in zip(parts, trees.items(), strict=True):
            part.suptitle(title, fontsize=11)
            grid = (math.ceil(len(own) / columns), min(columns, len(own)))
            for place, tree in enumerate(own, 1):
                axes = part.add_subplot(*grid, place)
                _draw_tree(axes, tree, feature_names, target_names)
            part.subplots_adjust(left=0.01, right=0.99, top=1 - 0.22 / grid[0], bottom=0.02, wspace=0.05)
        return _rendered(figure)


def _draw_tree(axes: Axes, tree: Tree, feature_names: Sequence[str], target_names: Sequence[str]) -> None:
    places = _places(tree)
    axes.set_axis_off()
    axes.margins(x=0.02, y=0.15)
    if tree.output >= 0:
        axes.set_title(target_names[tree.output], fontsize=9)
    else:
        colours = [Patch(color=f"C{j % 10}", label=name) for j, name in enumerate(target_names)]
        axes.legend(handles=colours, ncols=2, loc="upper right")
    for node in np.flatnonzero(~tree.is_leaf):
        x, y = places[node]
        for child in (tree.left[node], tree.right[node]):
            axes.plot(*zip((x, y), places[child], strict=True), color="0.6", linewidth=0.8, zorder=1)
        text = f"{feature_names[tree.feature[node]]}\n≤ {tree.threshold[node]:.3g}"
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.4", "linewidth": 0.6}
        axes.text(x, y, text, ha="center", va="center", bbox=box, zorder=2)
    largest = float(np.nanmax(np.abs(tree.value)))
    for leaf in np.flatnonzero(tree.is_leaf):
        x, y = places[leaf]
        if tree.value.shape[1] == 1:
            axes.text(x, y, f"{tree.value[leaf, 0]:+.2f}", ha="center", va="top", rotation=90)
        else:
            _draw_leaf_bars(axes, places[leaf], tree.value[leaf] / (largest or 1.0))


def _draw_leaf_bars(axes: Axes, at: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
    """Draw a leaf's vector as bars below its place, up for positive values."""
    width = 0.8 / len(shares)
    places = at[0] - 0.4 + width * (np.arange(len(shares)) + 0.5)
    base = at[1] - 0.7
    axes.bar(places, 0.65 * shares, width, bottom=base, color=[f"C{j % 10}" for j in range(len(shares))], zorder=2)
    axes.plot([at[0] - 0.4, at[0] + 0.4], [base, base], color="0.4", linewidth=0.6)


def _places(tree: Tree) -> NDArray[np.float64]:
    """Place leaves side by side in their order, and each inner node above the middle of its children; (n_nodes, 2)."""
    places = np.zeros((len(tree.feature), 2))
    places[:, 1] = -tree.depth
    pending, n_leaves = [0], 0
    while pending:
        node = pending.pop()
        if tree.feature[node] < 0:
            places[node, 0] = n_leaves
            n_leaves += 1
        else:
            pending += [int(tree.right[node]), int(tree.left[node])]
    for node in reversed(np.flatnonzero(~tree.is_leaf)):  # children come after their parents
        places[node, 0] = (places[tree.left[node], 0] + places[tree.right[node], 0]) / 2
    return places


def split_panels(trees: Mapping[str, Tree], targets: NDArray[np.float64]) -> dict[str, bytes]:
    """Draw what a split of samples 1 to n does to a matrix of targets, a panel a kind.

    Parameters
    ----------
    trees : mapping of str to Tree
        Of depth 1, on samples whose only feature is their number.
    targets : float64 array of shape (n, n_outputs)
    """
    n, n_outputs = targets.shape
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(3.2 * len(trees), 3.4), layout="constrained")
        for place, (title, tree) in enumerate(trees.items(), 1):
            axes = figure.add_subplot(1, len(trees), place)
            leaves = tree.value[[tree.left[0], tree.right[0]]]
            added = tree.value[tree.apply(np.arange(1.0, n + 1)[:, np.newaxis])]
            axes.imshow(np.vstack([added, leaves]) != 0, cmap="Blues", vmin=0, vmax=2.5, aspect="auto")
            for row, column in np.ndindex(n, n_outputs):
                axes.text(column, row, f"{targets[row, column]:g}", ha="center", va="center")
            for row, column in np.ndindex(leaves.shape):
                axes.text(column, n + row, f"{leaves[row, column]:.2f}", ha="center", va="center", weight="bold")
            axes.axhline(tree.threshold[0] - 1, color="firebrick", linewidth=2)
            axes.axhline(n - 0.5, color="black", linewidth=0.8)
            axes.set_xticks(range(n_outputs), [f"output {j}" for j in range(1, n_outputs + 1)])
            names = [*(f"sample {i}" for i in range(1, n + 1)), "leaf above", "leaf below"]
            axes.set_yticks(range(n + 2), names)
            axes.set_title(title)
        return _rendered(figure)


def label_regions(
    panels: Mapping[str, NDArray[Any]],
    X: NDArray[Any],
    indicator: NDArray[Any],
    names: Sequence[str],
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    columns: int,
) -> dict[str, bytes]:
    """Draw which label set is predicted where in the unit square, a panel a title, with points in the colour of theirs.

    Parameters
    ----------
    panels : mapping of str to array of shape (n_side, n_side, n_labels)
        0/1; the middle of the square [j, j + 1) × [i, i + 1), in units of 1 / n_side, has the set ``[i, j]``.
    X : array of shape (n, 2)
    indicator : array of shape (n, n_labels), at most 3 labels
        The points' own sets, 0/1.
    names : sequence of str
        Of the labels.
    lines : sequence of ((x1, x2), (x1, x2))
        Where true sets change: from one point to another.
    columns : int
        Panels side by side.
    """
    weights = 1 << np.arange(len(names))
    areas = {title: np.asarray(predicted) @ weights for title, predicted in panels.items()}
    own = np.asarray(indicator) @ weights
    colours = [mpl.colormaps["tab10"](code) for code in range(1 << len(names))]
    shown = sorted({int(code) for values in (own, *areas.values()) for code in np.unique(values)})
    with mpl.rc_context(_STYLE):
        height = math.ceil(len(panels) / columns)
        figure = Figure(figsize=(2.7 * columns, 2.8 * height + 0.5), layout="constrained")
        for place, (title, area) in enumerate(areas.items(), 1):
            axes = figure.add_subplot(height, columns, place, aspect="equal")
            picture = np.array(colours)[area]
            axes.imshow(picture, extent=(0, 1, 0, 1), origin="lower", alpha=0.4, interpolation="nearest")
            for start, end in lines:
                axes.plot(*zip(start, end, strict=True), color="black", linewidth=1)
            axes.scatter(X[:, 0], X[:, 1], s=14, c=[colours[code] for code in own], edgecolors="black", linewidths=0.5)
            axes.set(title=title, xticks=[0, 1], yticks=[0, 1], xlim=(0, 1), ylim=(0, 1), xlabel="x1", ylabel="x2")
        patches = [Patch(color=colours[code], label=_set_name(code, names)) for code in shown]
        figure.legend(handles=patches, ncols=min(4, len(patches)), loc="outside lower center")
        return _rendered(figure)


def _set_name(code: int, names: Sequence[str]) -> str:
    members = [name for k, name in enumerate(names) if code >> k & 1]
    return ", ".join(members) or "no label"


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

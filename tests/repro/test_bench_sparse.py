"""Table VI from made-up measurements whose means are worked out by hand."""

import math

import pandas as pd
from bench_records import rounds

from repro.bench.sparse import table6_frame, table6_markdown

PUBLISHED = pd.DataFrame([{"dataset": "mnist", "top_k": 2, "top_k_mode": "restricted", "seconds": 0.619}])
FULL = pd.DataFrame([{"dataset": "mnist", "hessian": "diagonal", "seconds_a_round": 0.79}])


def test_seconds_are_the_mean_of_all_rounds() -> None:
    measured = [
        rounds("mnist", "gbdt_mo", [4.0, 1.0, 1.0], group="sparse", variant="full", threads=2),
        rounds("mnist", "gbdt_mo", [1.0, 1.0, 1.0], group="sparse", variant="restricted 2", threads=2, other_cpu=1.0),
        rounds("other", "gbdt_mo", [3.0], group="sparse", variant="restricted 2", threads=2),
    ]
    for cell, _ in measured:
        cell.config["dataset"]["name"] = cell.shape
    frame = table6_frame(measured, PUBLISHED, FULL)
    assert frame["seconds"].tolist() == [2.0, 1.0, 3.0]
    assert frame["to_full"].tolist()[:2] == [1.0, 0.5]
    assert math.isnan(frame["to_full"].iloc[2])
    assert frame["published"].tolist()[:2] == [0.79, 0.619]
    assert math.isnan(frame["published"].iloc[2])
    line = table6_markdown(frame).splitlines()[3]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "mnist*", "restricted 2", "2", "1.00†", "0.500", "0.619"
    ]  # fmt: skip

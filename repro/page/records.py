"""Published records as groups of runs, each group with an anchor that numbers link to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

_REPEATED = ("seed", "repeat")
"""Parts of a cell's key that tell the runs of a group."""
_FIRST = ("dataset", "shape", "model")
"""Parts that come first in a path, so that what belongs to a data set, then to a model, stands together."""
_PLAIN = ("group", "model", "protocol", "variant", "split")
"""Parts that need no name before their value."""
Facts = Mapping[str, frozenset[str]]
"""What a table says of a number: by field, the values it may have."""


@dataclass(frozen=True)
class Group:
    """Runs that differ by seed or repeat alone.

    Attributes
    ----------
    key : dict of str to str
        The cell without seed or repeat; of swept settings the last word of the name.
    runs : list of (int, dict)
        Line in the file, and record.
    """

    key: dict[str, str]
    runs: list[tuple[int, dict[str, Any]]]

    @property
    def path(self) -> tuple[str, ...]:
        """The key's values, as an anchor spells them."""
        return tuple(re.sub(r"[^\w.-]+", "-", value) or "_" for value in self.key.values())

    @property
    def title(self) -> str:
        """The key but for its first value, in words."""
        _, *rest = self.key.items()
        return ", ".join(value if field in _PLAIN else f"{field} {value}" for field, value in rest if value)

    @property
    def settings(self) -> str:
        """The hyper-parameters, which all runs of the group share."""
        identity = self.runs[0][1]["identity"]
        params = identity.get("params", identity.get("estimator", {}))
        return ", ".join(f"{name} {value}" for name, value in params.items() if not name.startswith("_"))

    @property
    def commits(self) -> str:
        """The commits that the runs were made with."""
        found = {str(record["provenance"]["commit"])[:9] for _, record in self.runs}
        return ", ".join(sorted(found))


@dataclass(frozen=True)
class RecordFile:
    """The published records of an experiment.

    Attributes
    ----------
    name : str
        Of the experiment.
    groups : list of Group
        In the file's order.
    """

    name: str
    groups: list[Group]

    @cached_property
    def run_ids(self) -> frozenset[str]:
        """The ids of all runs."""
        return frozenset(record["run_id"] for record in self.records())

    @cached_property
    def fields(self) -> dict[str, list[str]]:
        """The values of each part of the key, in order of appearance."""
        found: dict[str, dict[str, None]] = {}
        for group in self.groups:
            for field, value in group.key.items():
                found.setdefault(field, {})[value] = None
        return {field: list(values) for field, values in found.items()}

    @cached_property
    def titles(self) -> dict[str, str]:
        """What benchmark shapes are called in headings."""
        described = (record["identity"]["dataset"] for record in self.records())
        return {one["name"]: one["title"] for one in described if isinstance(one, dict) and "title" in one}

    @cached_property
    def sizes(self) -> dict[str, str]:
        """How tables write the sizes of benchmark shapes."""
        described = (record["identity"]["dataset"] for record in self.records())
        return {
            one["name"]: f"{one['rows']:,} × {one['features']} → {one['outputs']}"
            for one in described
            if isinstance(one, dict) and {"rows", "features", "outputs"} <= set(one)
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records, group by group."""
        return (record for group in self.groups for _, record in group.runs)

    def anchor(self, path: Sequence[str] = ()) -> str:
        """Return the anchor of all groups whose path starts so."""
        return "/".join(["records", self.name, *path])

    def anchor_of(self, facts: Facts) -> str:
        """Return the anchor of the smallest part that holds all groups for which these facts are true."""
        fitting = [group.path for group in self.groups if _fits(group, facts)]
        if not fitting:
            return self.anchor()
        shared = []
        for values in zip(*fitting, strict=False):
            if len(set(values)) > 1:
                break
            shared.append(values[0])
        return self.anchor(shared)

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Yield the parts that the page shows as a table each: those of one first value of the key."""
        seen: set[str] = set()
        for value in next(iter(self.fields.values()), []):
            groups = [group for group in self.groups if next(iter(group.key.values())) == value]
            rows = [row(record, line) for group in groups for line, record in group.runs]
            names = dict.fromkeys(name for one in rows for name in one)
            shown = [name for name in names if any(one.get(name, "") != "" for one in rows)]
            yield {
                "title": value,
                "anchor": self.anchor(groups[0].path[:1]),
                "columns": [name for name in shown if name not in ("run", "line")],
                "groups": [
                    {
                        "anchors": self._new_anchors(group, seen),
                        "title": group.title,
                        "settings": group.settings,
                        "commits": group.commits,
                        "rows": [row(record, line) for line, record in group.runs],
                    }
                    for group in groups
                ],
            }

    def _new_anchors(self, group: Group, seen: set[str]) -> list[str]:
        """Return the anchors that lead to this group and not to one before it."""
        path = group.path
        own = [self.anchor(path[:length]) for length in range(2, len(path) + 1)]
        fresh = [anchor for anchor in own if anchor not in seen]
        seen.update(fresh)
        return fresh


def _fits(group: Group, facts: Facts) -> bool:
    return all(group.key.get(field) in values for field, values in facts.items() if values)


def record_file(name: str, records: Sequence[Mapping[str, Any]]) -> RecordFile:
    """Group an experiment's records, given in the order of their lines; what shares the start of a path is together."""
    found: dict[tuple[tuple[str, str], ...], list[tuple[int, dict[str, Any]]]] = {}
    for line, record in enumerate(records, 1):
        parts = {field.rpartition(".")[2]: str(value) for field, value in record["cell"].items()}
        fields = [*(field for field in _FIRST if field in parts), *(field for field in parts if field not in _FIRST)]
        key = tuple((field, parts[field]) for field in fields if field not in _REPEATED)
        found.setdefault(key, []).append((line, dict(record)))
    groups = [Group(dict(key), runs) for key, runs in found.items()]
    seen: dict[tuple[str, str], int] = {}
    for key in found:
        for part in key:
            seen.setdefault(part, len(seen))
    return RecordFile(name, sorted(groups, key=lambda group: [seen[part] for part in group.key.items()]))


def row(record: Mapping[str, Any], line: int) -> dict[str, str]:
    """Describe a run by what the page's tables are made from; empty text where it has no such value."""
    own = _measured(record) if "measured" in record else _scored(record)
    return {**own, "run": record["run_id"], "line": str(line)}


def _scored(record: Mapping[str, Any]) -> dict[str, str]:
    scores, best = record["scores"], record["best_round"]
    return {
        "seed": str(record["cell"]["seed"]),
        "test score": _text(scores["test"]),
        "validation": _text(scores["validation"]),
        "best round": _text(sum(best) / len(best) if isinstance(best, list) else best),
        "trees": _text(record["n_trees"]),
        "leaves": _text(record["n_leaves"]),
        "rows without a leaf": _share(record["unassigned_fraction"]),
        **_at_rounds(record),
        "duality gap": _text(record.get("solver", {}).get("duality_gap")),
        "train s": _text(record["seconds"]["train"]),
    }


def _at_rounds(record: Mapping[str, Any]) -> dict[str, str]:
    """Describe the curves on test rows, from the round that tables show first; a curve may end before the last."""
    return {
        f"{metric} after {number}": _text(value)
        for metric, values in record.get("at_rounds", {}).items()
        for number, value in values.items()
    }


def _measured(record: Mapping[str, Any]) -> dict[str, str]:
    measured = record["measured"]
    rounds = measured.get("round_seconds") or []
    return {
        "repeat": str(record["cell"]["repeat"]),
        "rounds": _text(len(rounds) or None),
        "median s a round": _text(median(rounds[1:]) if len(rounds) > 1 else None),
        "fit s": _text(measured.get("fit_seconds")),
        "s an epoch": _text(measured.get("epoch_seconds")),
        "relative gap": _text(measured.get("relative_gap")),
        "construction s": _text(measured.get("construct_seconds")),
        "score": _text(measured.get("score")),
        "peak MB": _text(measured.get("memory", {}).get("peak")),
        "other programs' cores": _text(record["other_cpu"]),
        "total s": _text(record["seconds"]["total"]),
    }


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"

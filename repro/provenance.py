"""Where a number comes from: code version, library versions, machine and load."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Some libraries are published under more than one distribution name; the first one installed counts.
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "scikit-learn": ("scikit-learn",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "lightgbm": ("lightgbm",),
    "catboost": ("catboost",),
    "hydra-core": ("hydra-core",),
    "omegaconf": ("omegaconf",),
    "joblib": ("joblib",),
    "mlflow": ("mlflow", "mlflow-skinny"),
}


def collect(threads: int | None = None) -> dict[str, Any]:
    """Describe the code, the libraries and the machine of this process, now.

    Parameters
    ----------
    threads : int, optional
        Number of threads the work may use; all usable cores if not given.

    Returns
    -------
    dict
        JSON-ready: ``commit`` (None outside a git checkout), ``dirty``, ``versions``, ``python``, ``platform``,
        ``cpu``, ``n_cpus`` (usable by this process), ``threads``, ``load_average`` (1, 5 and 15 minutes),
        ``started`` (UTC, ISO 8601).
    """
    return {
        **code_version(),
        "versions": library_versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "n_cpus": usable_cpus(),
        "threads": threads if threads is not None else usable_cpus(),
        "load_average": load_average(),
        "started": utc_now(),
    }


def utc_now() -> str:
    """Return the time now, UTC, ISO 8601 with seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@functools.cache
def code_version() -> dict[str, Any]:
    """Return ``commit`` and ``dirty`` of the checkout this file lies in.

    Files under ``results/`` do not make a checkout dirty: they are what runs produce, not what they run.
    """
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    changes = _git("status", "--porcelain", "--", ".", ":(exclude)results")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries a result can depend on, as far as they are installed."""
    versions = {}
    for name, distributions in _LIBRARIES.items():
        for distribution in distributions:
            try:
                versions[name] = metadata.version(distribution)
            except metadata.PackageNotFoundError:
                continue
            break
    return versions


@functools.cache
def cpu_model() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def usable_cpus() -> int:
    """Return the number of cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> list[float] | None:
    """Return the load averages over 1, 5 and 15 minutes, None where the system has none."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        return None

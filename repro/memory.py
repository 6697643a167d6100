"""Peak memory of a stretch of this process."""

import resource
import sys
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def reset_peak() -> bool:
    """Start a new measurement; return False where the system cannot forget the process's earlier peak.

    Linux forgets it when 5 is written to ``/proc/self/clear_refs``.
    """
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def peak_mb() -> float:
    """Largest resident memory in MiB since `reset_peak`; since the process started where that is False."""
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def resident_mb() -> float:
    """Resident memory now, in MiB."""
    return float(psutil.Process().memory_info().rss) / 2**20

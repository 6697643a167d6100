"""RAR archives, opened by rarfile with whatever program this machine has for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .base import DatasetError, FormatError

HELP = "install one of unrar, unar, 7zip or bsdtar (Debian: apt install unar)"


def can_open() -> bool:
    """Return whether a program that unpacks RAR is installed."""
    import rarfile

    try:
        rarfile.tool_setup()
    except rarfile.RarCannotExec:
        return False
    return True


@contextmanager
def open_member(path: Path, member: str) -> Iterator[IO[bytes]]:
    """Stream one file of an archive, found by its name in whatever folder.

    Raises
    ------
    DatasetError
        No program here unpacks it.
    FormatError
        It is no archive, is damaged, or has no such file.
    """
    import rarfile

    try:
        with rarfile.RarFile(path) as archive:
            names = [name for name in archive.namelist() if name.rpartition("/")[2] == member]
            if len(names) != 1:
                raise FormatError(f"{path} holds {len(names)} files named {member}, expected one")
            with archive.open(names[0]) as stream:
                yield stream
    except rarfile.RarCannotExec as error:
        raise DatasetError(f"no program here unpacks {path}: {HELP}, or unpack it yourself") from error
    except rarfile.Error as error:
        raise FormatError(f"{path} is no readable RAR archive ({error}); replace or remove it") from error

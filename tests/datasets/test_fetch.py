"""Finding and downloading: what arrives is verified, what fails leaves nothing behind."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from webserver import Server, not_found, serve

import datasets
from datasets import _origins, fetch
from datasets._origins import Url
from datasets.fetch import DataFile, locate

BODY = bytes(range(256)) * 400
SHA256 = hashlib.sha256(BODY).hexdigest()


def data_file(*urls: str, path: str = "set/file.bin") -> DataFile:
    return DataFile(path, SHA256, tuple(Url(url) for url in urls))


def files_below(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_download_is_verified_and_then_served_from_the_cache(server: Server, cache: Path) -> None:
    server.routes["/a"] = serve(BODY)
    file = data_file(server.url + "/a")
    (first,) = locate("set", ((file,),))
    assert first.path == cache / "set/file.bin"
    assert first.path.read_bytes() == BODY
    assert first.source == server.url + "/a"
    (second,) = locate("set", ((file,),), download=False)
    assert second.path == first.path
    assert second.source == "cache"
    assert server.asked == ["/a"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(not_found, "404", id="not found"),
        pytest.param(serve(BODY[:-1] + b"x"), SHA256, id="wrong bytes"),
        pytest.param(serve(b""), SHA256, id="empty"),
        pytest.param(serve(BODY[:5000], length=len(BODY)), "IncompleteRead", id="cut off"),
        pytest.param(serve(BODY, length=5000), SHA256, id="length too small"),
        pytest.param(serve(BODY, length=len(BODY) + 1), "IncompleteRead", id="length too large"),
    ],
)
def test_failed_download_leaves_nothing_behind(server: Server, tmp_path: Path, answer, reason: str) -> None:
    server.routes["/a"] = answer
    file = data_file(server.url + "/a")
    with pytest.raises(datasets.MissingDataError) as caught:
        locate("set", ((file,),))
    message = str(caught.value)
    assert reason in message
    assert server.url + "/a" in message
    assert "GBDTMO_DATA" in message
    assert "set/file.bin" in message
    assert files_below(tmp_path) == []

    server.routes["/a"] = serve(BODY)
    assert locate("set", ((file,),))[0].path.read_bytes() == BODY


def test_server_that_stops_sending_is_given_up(server: Server, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_origins, "READ_TIMEOUT", 0.3)
    released = threading.Event()
    server.routes["/a"] = serve(BODY[:5000], length=len(BODY), then=released.wait)
    with pytest.raises(datasets.MissingDataError, match="timed out"):
        locate("set", ((data_file(server.url + "/a"),),))
    released.set()
    assert files_below(tmp_path) == []


def test_next_mirror_is_tried(server: Server) -> None:
    server.routes["/wrong"] = serve(b"something else")
    server.routes["/good"] = serve(BODY)
    urls = [f"{server.url}/{name}" for name in ("missing", "wrong", "good")]
    (found,) = locate("set", ((data_file(*urls),),))
    assert found.source == urls[2]
    assert server.asked == ["/missing", "/wrong", "/good"]


def test_unreachable_host_is_asked_once(server: Server, monkeypatch) -> None:
    dead = Server()
    dead.close()
    asked: list[str] = []
    download = _origins._download

    def spy(url: str, output: Path) -> None:
        asked.append(url)
        download(url, output)

    monkeypatch.setattr(_origins, "_download", spy)
    server.routes["/a"] = server.routes["/b"] = serve(BODY)
    files = [data_file(f"{dead.url}/{n}", f"{server.url}/{n}", path=f"set/{n}") for n in "ab"]
    assert len(locate("set", (files,))) == 2
    assert asked == [f"{dead.url}/a", f"{server.url}/a", f"{server.url}/b"]


def test_what_was_tried_is_told_of_every_origin(cache: Path) -> None:
    dead = Server()
    dead.close()
    archive = Url(f"{dead.url}/set.zip", ("inner.zip", "file.bin"))
    file = DataFile("set/file.bin", SHA256, (archive, Url(f"{dead.url}/file.bin")))
    with pytest.raises(datasets.MissingDataError) as caught:
        locate("set", ((file,),))
    for part in (
        f"{archive.label}: ConnectionError",
        f"{dead.url}/file.bin: not tried, {archive.host} was out of reach",
        f"{dead.url}/set.zip (unpack inner.zip, then file.bin)  or  {dead.url}/file.bin",
    ):
        assert part in str(caught.value)


def test_no_network_helps_a_set_that_is_not_public(cache: Path) -> None:
    with pytest.raises(datasets.MissingDataError, match="Nothing of it can be downloaded") as caught:
        locate("set", ((data_file(),),))
    assert "set/file.bin  from  a copy you have" in str(caught.value)
    assert "Try again" not in str(caught.value)


def test_second_form_is_used_when_the_first_cannot_be_had_whole(server: Server, cache: Path) -> None:
    server.routes["/a"] = server.routes["/other"] = serve(BODY)
    first = [data_file(f"{server.url}/{n}", path=f"set/{n}") for n in "ab"]
    second = [data_file(server.url + "/other", path="set/other")]
    (found,) = locate("set", (first, second))
    assert found.path == cache / "set/other"


def test_damaged_cache_file_is_replaced(server: Server, cache: Path) -> None:
    server.routes["/a"] = serve(BODY)
    file = data_file(server.url + "/a")
    path = locate("set", ((file,),))[0].path
    path.write_bytes(BODY[:100])
    with pytest.raises(datasets.MissingDataError, match=f"damaged.*{SHA256}"):
        locate("set", ((file,),), download=False)
    assert locate("set", ((file,),))[0].path.read_bytes() == BODY
    assert files_below(cache) == [path]


def test_own_folder_comes_first(server: Server, tmp_path: Path, monkeypatch) -> None:
    own = tmp_path / "own/set/file.bin"
    own.parent.mkdir(parents=True)
    own.write_bytes(BODY)
    monkeypatch.setenv("GBDTMO_DATA", str(tmp_path / "own"))
    (found,) = locate("set", ((data_file(server.url + "/a"),),))
    assert (found.path, found.source) == (own, "GBDTMO_DATA")
    assert server.asked == []


def test_wrong_file_in_own_folder_is_an_error(server: Server, tmp_path: Path, monkeypatch) -> None:
    server.routes["/a"] = serve(BODY)
    own = tmp_path / "own/set/file.bin"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"edited")
    monkeypatch.setenv("GBDTMO_DATA", str(tmp_path / "own"))
    with pytest.raises(datasets.ChecksumError) as caught:
        locate("set", ((data_file(server.url + "/a"),),))
    for part in (str(own), SHA256, hashlib.sha256(b"edited").hexdigest()):
        assert part in str(caught.value)
    assert server.asked == []


def test_own_folder_that_does_not_exist_is_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GBDTMO_DATA", str(tmp_path / "mistyped"))
    with pytest.raises(datasets.DataFolderError, match="mistyped"):
        locate("set", ((data_file(),),))


def test_cache_that_cannot_be_made_is_reported_before_downloading(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    with pytest.raises(datasets.DataFolderError, match="GBDTMO_CACHE"):
        locate("set", ((data_file(server.url + "/a"),),), cache_dir=tmp_path / "a file" / "cache")
    assert server.asked == []


def test_full_cache_is_reported_and_left_clean(server: Server, tmp_path: Path, monkeypatch) -> None:
    def copy_until_full(source: Path, target: Path) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    server.routes["/a"] = serve(BODY)
    monkeypatch.setattr(shutil, "copyfile", copy_until_full)
    with pytest.raises(datasets.DataFolderError, match="No space left"):
        locate("set", ((data_file(server.url + "/a"),),))
    assert files_below(tmp_path) == []


def start_download(url: str, project_root: Path) -> subprocess.Popen[str]:
    code = (
        "import sys; from datasets.fetch import *; from datasets._origins import Url\n"
        "url, sha256 = sys.argv[1:]\n"
        "print(locate('set', ((DataFile('set/file.bin', sha256, (Url(url),)),),))[0].source)"
    )
    command = [sys.executable, "-c", code, url, SHA256]
    return subprocess.Popen(
        command, cwd=project_root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    )


def test_killed_download_leaves_the_cache_empty(server: Server, cache: Path, project_root: Path) -> None:
    half_sent, released = threading.Event(), threading.Event()

    def pause() -> None:
        half_sent.set()
        released.wait(60)

    server.routes["/a"] = serve(BODY[:50_000], length=len(BODY), then=pause)
    process = start_download(server.url + "/a", project_root)
    assert half_sent.wait(60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    released.set()
    assert files_below(cache) == []


def test_two_processes_may_download_at_once(server: Server, cache: Path, project_root: Path) -> None:
    both_here = threading.Barrier(2, timeout=60)
    whole = serve(BODY)

    def answer(handler) -> None:
        both_here.wait()
        whole(handler)

    server.routes["/a"] = answer
    processes = [start_download(server.url + "/a", project_root) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in outputs] == [server.url + "/a"] * 2, outputs
    assert [path.read_bytes() for path in files_below(cache)] == [BODY]


def testcache_folder_order(tmp_path: Path, monkeypatch) -> None:
    assert fetch.cache_folder(tmp_path / "given") == tmp_path / "given"
    assert fetch.cache_folder(None) == tmp_path / "cache"
    monkeypatch.delenv("GBDTMO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert fetch.cache_folder(None) == tmp_path / "xdg/gbdtmo"


@pytest.mark.parametrize("variable", ["GBDTMO_DATA", "GBDTMO_CACHE"])
def test_the_home_of_an_unknown_user_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "~no-such-user-here/data")
    with pytest.raises(datasets.DatasetError, match=f"{variable} names '~no-such-user-here/data'"):
        datasets.load("yeast", download=False)

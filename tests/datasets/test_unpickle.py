"""Only arrays come out of a pickle; nothing in it is run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from datasets import FormatError
from datasets._unpickle import load_arrays


class Touch:
    """Makes a file when unpickled without restriction."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_malicious_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "made"
    content = pickle.dumps(("rows", Touch(target)), protocol)
    with pytest.raises(FormatError, match="mkdir"):
        load_arrays(content)
    assert not target.exists()
    pickle.loads(content)
    assert target.exists(), "the pickle of this test does nothing, so the test shows nothing"


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_come_out(protocol: int) -> None:
    rows, labels = load_arrays(pickle.dumps((np.arange(6.0).reshape(2, 3), np.array([1, 2])), protocol))
    assert rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert labels.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["eval", "exec", "getattr", "__import__"])
def test_builtins_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match=name):
        load_arrays(b"cbuiltins\n" + name.encode() + b"\n.")


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps((np.arange(9.0),), 2)[:-30]])
def test_damaged_pickle(content: bytes) -> None:
    with pytest.raises(FormatError):
        load_arrays(content)


def test_pickle_written_by_python_2() -> None:
    """Python 2 wrote the bytes of an array as a string: here np.array([1, 200], dtype='u1')."""
    content = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x02\x01\xc8tb."
    )
    assert load_arrays(content).tolist() == [1, 200]

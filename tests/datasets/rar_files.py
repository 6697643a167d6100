"""RAR archives of files that are stored, not packed; written from RARLAB's description of the format, version 5."""

from __future__ import annotations

import zlib

_SIGNATURE = b"Rar!\x1a\x07\x01\x00"
_MAIN, _FILE, _END = 1, 2, 5


def stored(**files: bytes) -> bytes:
    """Write an archive of files by name."""
    parts = [_SIGNATURE, _block(_MAIN, 0, _number(0))]
    for name, content in files.items():
        # Flags: a CRC is given. Attributes, CRC, method 0 of version 0 (stored), made on Unix, the name.
        fields = _number(4) + _number(len(content)) + _number(0o100644)
        fields += zlib.crc32(content).to_bytes(4, "little") + _number(0) + _number(1)
        fields += _number(len(name)) + name.encode()
        parts += [_block(_FILE, len(content), fields), content]
    return b"".join([*parts, _block(_END, 0, _number(0))])


def _block(kind: int, data_size: int, fields: bytes) -> bytes:
    head = _number(kind) + (_number(2) + _number(data_size) if kind == _FILE else _number(0)) + fields
    head = _number(len(head)) + head
    return zlib.crc32(head).to_bytes(4, "little") + head


def _number(value: int) -> bytes:
    """Write seven bits a byte, the lowest first; the highest bit says that more follow."""
    content = bytearray()
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    return bytes([*content, value])

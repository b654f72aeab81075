# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Reads the frames of a pcapng file, as far as the tests ask: whole blocks, little endian."""

import struct

SECTION, ENHANCED_PACKET = 0x0A0D0D0A, 6


def frames(path):
    """The frames of all enhanced packet blocks; raises ValueError where the file is not whole."""
    data = path.read_bytes()
    found, at = [], 0
    while at < len(data):
        if len(data) - at < 12:
            raise ValueError(f'{len(data) - at} bytes behind the last block')
        kind, length = struct.unpack_from('<II', data, at)
        if at == 0 and kind != SECTION:
            raise ValueError('no section header')
        if length < 12 or length % 4 or at + length > len(data):
            raise ValueError(f'block of {length} bytes at {at}')
        if struct.unpack_from('<I', data, at + length - 4)[0] != length:
            raise ValueError(f'the two lengths of the block at {at} differ')
        if kind == ENHANCED_PACKET:
            captured = struct.unpack_from('<I', data, at + 20)[0]
            found.append(data[at + 28:at + 28 + captured])
        at += length
    return found

# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Asks DPDK's telemetry socket of a running process, as dpdk-telemetry.py does."""

import json
import os
import socket
import sys


def ask(directory, command):
    """One question on DPDK's telemetry socket, as dpdk-telemetry.py asks it; None: nobody there."""
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        if not name.startswith('dpdk_telemetry.v2'):
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(60)
            try:
                peer.connect(os.path.join(directory, name))
                json.loads(peer.recv(1024))  # the greeting
                peer.send(command.encode())
                return json.loads(peer.recv(1 << 20))
            except ConnectionRefusedError:
                pass  # left behind by a killed process
    return None


if __name__ == '__main__':
    print(json.dumps(ask(*sys.argv[1:])))

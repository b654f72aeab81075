#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""pmf-perf as users start it, over providers that every machine has.

    test_pairs.py PMF_PERF tcp|shm

Server and client as real processes: each mode, each direction, one to many, many to one, every
output format, the prompt, and the ways to fail. Prints TAP.
"""

import csv
import io
import json
import os
import socket
import subprocess
import sys
import time
import unittest

PERF, PROVIDER = sys.argv[1:3]
ENV = dict(os.environ, FI_TCP_IFACE="lo")
SECONDS = 300  # ends what hangs; no judgement of speed


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(*args, stdin=subprocess.DEVNULL):
    return subprocess.Popen([PERF, "--provider", PROVIDER, *args], env=ENV, text=True, stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Server:
    """A server that listens, and what its clients call it."""

    def __init__(self, *args):
        port = free_port()
        if PROVIDER == "shm":
            self.peer, own = f"pmf-test-{os.getpid()}:{port}", ["--name", f"pmf-test-{os.getpid()}"]
        else:
            self.peer, own = f"127.0.0.1:{port}", ["--bind", "127.0.0.1"]
        self.process = start("--listen", "--port", port, *own, *args)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line + self.process.stderr.read()

    def end(self, status=0):
        out, err = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == status, f"server: {self.process.returncode} {err}"
        return out, err


def finish(process, status=0, text=None):
    out, err = process.communicate(text, timeout=SECONDS)
    assert process.returncode == status, f"client: {process.returncode} {out} {err}"
    return out, err


def rows(*args):
    """One server, one client, JSON."""
    server = Server()
    out, _ = finish(start("--peer", server.peer, "--format", "json", *args))
    server.end()
    return json.loads(out)["results"]


def test_latency():
    got = rows("--mode", "lat", "--size", "0,8,4k", "--count", "300", "--verify")
    assert [r["bytes"] for r in got] == [0, 8, 4096]
    for r in got:
        t = r["half_rtt_us"]
        assert r["messages"] == 300 and r["verified"]
        assert 0 < t["min"] <= t["p50"] <= t["p99"] <= t["p99.9"] <= t["max"]


def test_streams_in_every_direction():
    for direction, flows in (("tx", 1), ("rx", 1), ("both", 2)):
        got = rows("--mode", "rate,bw", "--size", "8,64k", "--count", "500", "--verify",
                   "--direction", direction)
        assert [r["mode"] for r in got] == ["rate", "rate", "bw", "bw"]
        for r in got:
            assert r["messages"] == 500 * flows, r
            assert (r["tx_messages_per_s"] > 0) == (direction != "rx"), r
            assert (r["rx_messages_per_s"] > 0) == (direction != "tx"), r


def test_bursts_and_inject():
    for args in (["--more", "8"], ["--inject", "on"], ["--window", "1"], ["--warmup", "0"],
                 ["--walk", "1m"], ["--register"]):
        got = rows("--mode", "rate", "--size", "8", "--count", "1000", "--verify", *args)
        assert got[0]["messages"] == 1000, (args, got)


def test_mixed_sizes():
    got = rows("--mix", "7", "--window", "8", "--count", "3000")
    assert got[0]["messages"] == 2 * 3000 and got[0]["verified"], got


def test_by_time():
    got = rows("--mode", "rate,lat", "--size", "8", "--duration", "100ms")
    for r in got:
        assert 0.05 < r["seconds"] < 5 and r["messages"] > 0, r


def test_one_to_many():
    servers = [Server(), Server()]
    peers = [a for s in servers for a in ("--peer", s.peer)]
    out, _ = finish(start(*peers, "--mode", "lat,rate", "--size", "8", "--count", "200",
                          "--direction", "both", "--verify", "--format", "json"))
    for s in servers:
        s.end()
    lat, rate = json.loads(out)["results"]
    assert lat["messages"] == 400 and lat["partners"] == 2
    assert rate["messages"] == 800


def test_many_to_one():
    server = Server("--clients", "2")
    clients = [start("--peer", server.peer, "--mode", "lat,rate", "--size", "0,8", "--count", "200",
                     "--direction", "both", "--verify", "--format", "json") for _ in range(2)]
    for c in clients:
        out, _ = finish(c)
        assert [r["messages"] for r in json.loads(out)["results"]] == [200, 200, 400, 400]
    server.end()


def test_several_endpoints_on_either_side():
    for there, here in ((3, 1), (1, 3), (2, 5)):
        server = Server("--endpoints", str(there))
        out, _ = finish(start("--peer", server.peer, "--endpoints", str(here), "--mode", "lat,rate",
                              "--size", "8,3k", "--count", "200", "--direction", "both", "--more",
                              "4", "--verify", "--format", "json"))
        server.end()
        got = json.loads(out)["results"]
        assert [r["messages"] for r in got] == [200, 200, 400, 400], got
        assert all(r["pairs"] == max(there, here) for r in got), got


def test_several_endpoints_of_several_servers():
    servers = [Server("--endpoints", "2"), Server("--endpoints", "3")]
    peers = [a for s in servers for a in ("--peer", s.peer)]
    out, _ = finish(start(*peers, "--mode", "rate", "--count", "200", "--direction", "both",
                          "--verify", "--format", "json"))
    for s in servers:
        s.end()
    got, = json.loads(out)["results"]
    assert got["messages"] == 800 and got["pairs"] == 5, got


def test_both_ends_in_one_program():
    own = ["--name", f"pmf-test-{os.getpid()}"] if PROVIDER == "shm" else ["--bind", "127.0.0.1"]
    out, _ = finish(start("--self", *own, "--size", "0,8,4k", "--count", "300", "--format", "json"))
    got = json.loads(out)["results"]
    assert [(r["bytes"], r["messages"]) for r in got] == [(0, 300), (8, 300), (4096, 300)], got
    for r in got:
        t = r["half_rtt_us"]
        assert 0 < t["min"] <= t["p50"] <= t["p99"] <= t["max"], got


def test_several_threads_in_one_program():
    own = ["--name", f"pmf-test-{os.getpid()}"] if PROVIDER == "shm" else ["--bind", "127.0.0.1"]
    out, _ = finish(start("--self", *own, "--threads", "2", "--mode", "rate,lat", "--warmup", "10",
                          "--count", "500", "--window", "8", "--format", "json"))
    whole = json.loads(out)
    rate, lat = whole["results"]
    assert rate["messages"] == 1000 and rate["pairs"] == 2 and rate["window"] == 8, rate
    assert lat["messages"] == 1000 and lat["half_rtt_us"]["p50"] > 0, lat
    assert whole["domain"]["ms"] > 0, whole


def test_csv():
    server = Server()
    out, _ = finish(start("--peer", server.peer, "--size", "1-4", "--count", "100", "-f", "csv"))
    server.end()
    got = list(csv.DictReader(io.StringIO(out)))
    assert [r["bytes"] for r in got] == ["1", "2", "4"]
    assert all(float(r["half_rtt_p50_us"]) > 0 for r in got)


def test_server_serves_again_until_it_is_stopped():
    server = Server("--forever")
    for _ in range(2):
        finish(start("--peer", server.peer, "--count", "50"))
    server.process.terminate()
    server.end()


def test_prompt():
    server = Server()
    client = start("--peer", server.peer, "-i", stdin=subprocess.PIPE)
    out, err = finish(client, 1, "set mode rate\nset count 1000\nshow config\nstart\nwait\n"
                                 "bogus\nset duration 1m\nset mode bw\nstart\nstop\nwait\nquit\n")
    server.end()
    assert "mode rate" in out and "\nrate " in out and "\nbw " in out, out
    assert "'bogus' is no command" in err, err


def fails(status, *args):
    out, err = finish(subprocess.Popen([PERF, *args], env=ENV, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE), status)
    assert err.startswith("pmf-perf: ") and err.count("\n") == 1 and out == "", (out, err)
    return err


def test_failures_are_one_sentence():
    fails(2)
    fails(2, "--bogus")
    fails(2, "--peer", "a", "--size", "many")
    fails(2, "--peer", "a", "--endpoints", "0")
    fails(2, "--self", "--verify")
    fails(2, "--threads", "2", "--peer", "a")
    fails(2, "--self", "--listen")
    fails(1, "-p", "nothing", "--peer", "a")
    assert "EAL did not start" in fails(1, "--bogus", "--", "--listen")
    assert "EAL did not start" in fails(1, "--vdev=net_nothing0", "--no-huge", "--no-shconf", "-m",
                                        "64", "--", "--listen")
    peer = f"127.0.0.1:{free_port()}" if PROVIDER == "tcp" else "pmf-test-nobody"
    assert "did not answer" in fails(1, "-p", PROVIDER, "--peer", peer, "--timeout", "300ms")


def test_a_killed_peer_ends_the_other():
    if PROVIDER == "shm":
        # Its spin locks lie in the memory that the processes share, and die locked.
        raise unittest.SkipTest("shm does not survive the death of a process")
    server = Server("--timeout", "1")
    client = start("--peer", server.peer, "--mode", "rate", "--duration", "1m", "--timeout", "1",
                   "-v")
    client.stdout.readline()
    client.kill()
    client.communicate()
    _, err = server.end(1)
    assert err.startswith("pmf-perf: "), err


def test_clients_that_do_not_come():
    server = Server("--clients", "2", "--timeout", "3s")
    _, err = finish(start("--peer", server.peer), 1)
    assert "only 1 of 2 clients came" in err, err
    server.end(1)


def main():
    tests = [f for name, f in sorted(globals().items()) if name.startswith("test_")]
    failed = 0
    print(f"1..{len(tests)}")
    for n, test in enumerate(tests, 1):
        t0 = time.monotonic()
        try:
            test()
            print(f"ok {n} - {test.__name__} # {time.monotonic()-t0:.1f}", flush=True)
        except unittest.SkipTest as e:
            print(f"ok {n} - {test.__name__} # SKIP {e}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {n} - {test.__name__}", flush=True)
            print("\n".join("# " + line for line in f"{type(e).__name__}: {e}".splitlines()))
    return 1 if failed else 0


sys.exit(main())

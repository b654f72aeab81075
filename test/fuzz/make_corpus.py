#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Writes corpus/wire and corpus/frame, one packet or frame a file: make_corpus.py CORPUS

Written from docs/protocol.md and not from the decoder, so it is also a second opinion on the layout.
"""

import os
import struct
import sys

HELLO, CHALLENGE, OPEN, DATA, ACK, PROBE, RESET, MULTICAST = range(1, 9)
START, CONT, BODY, INVITE, HOLD, ABORT, CONNREQ, ACCEPT, REJECT, CLOSE = range(1, 11)
WHOLE, ANNOUNCE, CQDATA, TAG, OPTIONAL = 0x01, 0x02, 0x04, 0x08, 0x80


def packet(kind, fields, body=b'', flags=0, version=1, key=0, longer=0):
    length = 16 + len(fields) + longer
    assert length % 4 == 0
    prefix = struct.pack('>BBBBBBHQ', version, length // 4, kind, flags, key, 0, 3, 0x1122334455667788)
    return prefix + fields + bytes(longer) + body


def seq(psn=1, ack=1, sack=()):
    fields = struct.pack('>IIIIIIHBB', psn, psn + 100, ack, 7, 1000, 4096, 2, len(sack), 0)
    return fields + b''.join(struct.pack('>HH', *r) for r in sack)


def rec(kind, flags, msg, head=b'', payload=b''):
    rest = struct.pack('>I', msg) + head + payload
    return struct.pack('>BBH', kind, flags, len(rest)) + rest


def u64(*values):
    return struct.pack(f'>{len(values)}Q', *values)


def packets():
    hello = u64(1, 2, 3, 4) + struct.pack('>HH', 7471, 1472) + bytes(12)
    block = u64(1, 2, 3, 4, 5) + struct.pack('>HHI', 7471, 1472, 0)
    whole = rec(START, WHOLE, 1, b'', b'hello, world')
    yield 'hello', packet(HELLO, hello)
    yield 'hello-verify-padded', packet(HELLO, hello, bytes(40), flags=0x04)
    yield 'challenge', packet(CHALLENGE, u64(1, 2, 3, 4, 5) + struct.pack('>IHH', 1024, 8972, 0))
    yield 'challenge-gone', packet(CHALLENGE, u64(1, 2, 3, 4, 5) + bytes(8), flags=0x08)
    yield 'open', packet(OPEN, seq() + block, whole)
    yield 'open-sack', packet(OPEN, seq(sack=[(1, 1)]) + block, whole)
    yield 'reset', packet(RESET, u64(9) + struct.pack('>H6x', 7471))
    yield 'ack', packet(ACK, seq())
    yield 'ack-sack', packet(ACK, seq(sack=[(1, 2), (10, 5), (100, 1)]))
    yield 'ack-sack-full', packet(ACK, seq(sack=[(1 + 4 * i, 2) for i in range(16)]))
    yield 'ack-sack-bad', packet(ACK, seq(sack=[(0, 1)]))
    yield 'ack-echo-resync', packet(ACK, seq(), flags=0x03)
    yield 'probe', packet(PROBE, seq())
    yield 'probe-padded-resync', packet(PROBE, seq(), bytes(1156), flags=0x01)
    yield 'data-whole', packet(DATA, seq(), whole)
    yield 'data-empty-message', packet(DATA, seq(), rec(START, WHOLE, 2))
    yield 'data-many', packet(DATA, seq(), b''.join(
        rec(START, WHOLE | CQDATA, i, u64(i), bytes(i)) for i in range(1, 20)))
    yield 'data-first-of-long', packet(DATA, seq(), rec(START, 0, 3, u64(5000), bytes(100)))
    yield 'data-cont', packet(DATA, seq(2), rec(CONT, 0, 3, u64(100), bytes(200)))
    yield 'data-announce', packet(DATA, seq(), rec(START, ANNOUNCE | CQDATA, 4, u64(1 << 24, 77)))
    yield 'data-body', packet(DATA, seq(), rec(BODY, 0, 4, u64(4096), bytes(64)))
    yield 'data-controls', packet(DATA, seq(), rec(INVITE, 0, 1) + rec(HOLD, 0, 2) + rec(ABORT, 0, 3))
    yield 'data-connection', packet(DATA, seq(), b''.join(
        rec(kind, 0, reason, b'', bytes(64)) for reason, kind in enumerate(range(CONNREQ, CLOSE + 1))))
    yield 'data-connection-long', packet(DATA, seq(), rec(CONNREQ, 0, 0, b'', bytes(257)))
    yield 'hello-connect', packet(HELLO, hello, flags=0x10)
    yield 'reset-refused', packet(RESET, u64(9) + struct.pack('>H6x', 7471), flags=0x20)
    yield 'data-kinds', packet(DATA, seq(), b''.join(rec(START, WHOLE | k << 4, k) for k in range(4)))
    yield 'data-tag', packet(DATA, seq(), rec(START, WHOLE | TAG | 1 << 4, 5, u64(99), b'x'))
    yield 'data-optional', packet(DATA, seq(), rec(40, OPTIONAL, 5) + whole)
    yield 'data-unknown', packet(DATA, seq(), rec(40, 0, 5) + whole)
    yield 'data-cut', packet(DATA, seq(), whole)[:-3]
    yield 'data-longer-header', packet(DATA, seq(), whole, longer=8)
    yield 'other-version', packet(DATA, seq(), whole, version=2)
    yield 'other-key', packet(DATA, seq(), whole + bytes(16), key=1)
    yield 'multicast', packet(MULTICAST, u64(7, 1) + struct.pack('>H6x', 7471) + whole)
    yield 'multicast-short', packet(MULTICAST, bytes(16))
    yield 'prefix', packet(DATA, b'')
    yield 'nothing', b''


OURS4, PEER4 = bytes([10, 99, 0, 1]), bytes([10, 99, 0, 2])
OURS6, PEER6 = bytes.fromhex('fd00' + '00' * 13 + '01'), bytes.fromhex('fd00' + '00' * 13 + '02')
PEER_MAC = bytes([2, 0, 0, 0, 0, 2])
RIGHT = 3  # the fuzzer writes the port's address and the checksums


def ether(kind, payload, dst=b'\xff' * 6, vlan=None):
    tag = struct.pack('>HH', 0x8100, vlan) if vlan is not None else b''
    return dst + PEER_MAC + tag + struct.pack('>H', kind) + payload


def ipv4(proto, payload, src=PEER4, dst=OURS4, options=b'', frag=0, tos=0, more=0):
    words = 5 + len(options) // 4
    return struct.pack('>BBHHHBBH', 0x40 | words, tos, words * 4 + len(payload) + more, 1, frag, 64,
                       proto, 0) + src + dst + options + payload


def ipv6(proto, payload, src=PEER6, dst=OURS6, hops=64, more=0):
    return struct.pack('>IHBB', 0x60000000, len(payload) + more, proto, hops) + src + dst + payload


def udp(payload, more=0):
    return struct.pack('>HHHH', 40000, 7471, 8 + len(payload) + more, 0) + payload


def arp(op, spa, tpa):
    return struct.pack('>HHBBH', 1, 0x0800, 6, 4, op) + PEER_MAC + spa + bytes(6) + tpa


GROUP4, ALL4, IGMPV3 = bytes([239, 1, 2, 3]), bytes([224, 0, 0, 1]), bytes([224, 0, 0, 22])
GROUP6 = bytes.fromhex('ff05' + '00' * 11 + '010003')
ALL6, MLDV2 = bytes.fromhex('ff02' + '00' * 13 + '01'), bytes.fromhex('ff02' + '00' * 13 + '16')
ROUTER6 = bytes.fromhex('fe80' + '00' * 13 + '99')
ALERT4, ALERT6 = bytes([0x94, 4, 0, 0]), bytes([58, 0, 5, 2, 0, 0, 1, 0])


def igmp(message, dst=ALL4, options=ALERT4, ttl=1):
    packet4 = bytearray(ipv4(2, message, dst=dst, options=options))
    packet4[8] = ttl
    return ether(0x0800, bytes(packet4))


def mld(message, dst=ALL6, options=ALERT6, hops=1, src=ROUTER6):
    return ether(0x86dd, ipv6(0, options + message, src=src, dst=dst, hops=hops))


def igmp_query(group=bytes(4), sources=0, said=None, code=5):
    return (struct.pack('>BBH4sBBH', 0x11, code, 0, group, 2, 125, sources if said is None else said)
            + b''.join(bytes([10, 1, 1, i]) for i in range(sources)))


def mld_query(group=bytes(16), sources=0, said=None, code=500):
    return (struct.pack('>BBHHH16sBBH', 130, 0, 0, code, 0, group, 2, 125,
                        sources if said is None else said)
            + b''.join(PEER6[:15] + bytes([i]) for i in range(sources)))


def group_frames():
    yield 'igmp-general', RIGHT, igmp(igmp_query())
    yield 'igmp-group', RIGHT, igmp(igmp_query(GROUP4), GROUP4)
    yield 'igmp-sources', RIGHT, igmp(igmp_query(GROUP4, 3), GROUP4)
    yield 'igmp-many-sources', RIGHT, igmp(igmp_query(GROUP4, 60), GROUP4)
    yield 'igmp-sources-lie', RIGHT, igmp(igmp_query(GROUP4, 1, said=0xffff), GROUP4)
    yield 'igmp-long-code', RIGHT, igmp(igmp_query(code=0xff))
    yield 'igmp-2', RIGHT, igmp(struct.pack('>BBH4s', 0x11, 5, 0, bytes(4)))
    yield 'igmp-1', RIGHT, igmp(struct.pack('>BBH4s', 0x11, 0, 0, bytes(4)))
    yield 'igmp-between', RIGHT, igmp(igmp_query()[:10])
    yield 'igmp-report', RIGHT, igmp(struct.pack('>BBHHHBBH4s', 0x22, 0, 0, 0, 1, 4, 0, 0, GROUP4), IGMPV3)
    yield 'igmp-no-alert', RIGHT, igmp(igmp_query(), options=b'')
    yield 'igmp-option-lies', RIGHT, igmp(igmp_query(), options=bytes([0x94, 40, 0, 0]))
    yield 'igmp-far', RIGHT, igmp(igmp_query(), ttl=9)
    yield 'mld-general', RIGHT, mld(mld_query())
    yield 'mld-group', RIGHT, mld(mld_query(GROUP6), GROUP6)
    yield 'mld-sources', RIGHT, mld(mld_query(GROUP6, 3), GROUP6)
    yield 'mld-many-sources', RIGHT, mld(mld_query(GROUP6, 60), GROUP6)
    yield 'mld-sources-lie', RIGHT, mld(mld_query(GROUP6, 1, said=0xffff), GROUP6)
    yield 'mld-long-code', RIGHT, mld(mld_query(code=0xffff))
    yield 'mld-1', RIGHT, mld(mld_query()[:24])
    yield 'mld-between', RIGHT, mld(mld_query()[:26])
    yield 'mld-report', RIGHT, mld(struct.pack('>BBHHHBBH16s', 143, 0, 0, 0, 1, 4, 0, 0, GROUP6), MLDV2)
    yield 'mld-no-alert', RIGHT, mld(mld_query(), options=bytes([58, 0, 1, 4, 0, 0, 0, 0]))
    yield 'mld-options-lie', RIGHT, mld(mld_query(), options=bytes([58, 0, 5, 200, 0, 0, 1, 0]))
    yield 'mld-options-long', RIGHT, mld(mld_query(), options=bytes([58, 200, 5, 2, 0, 0, 1, 0]))
    yield 'mld-far', RIGHT, mld(mld_query(), hops=9)
    yield 'mld-global', RIGHT, mld(mld_query(), src=PEER6)
    yield 'udp4-joined', RIGHT, ether(0x0800, ipv4(17, udp(bytes(50)), dst=GROUP4))
    yield 'udp6-joined', RIGHT, ether(0x86dd, ipv6(17, udp(bytes(50)), dst=GROUP6))


def frames():
    yield from group_frames()
    data = bytes(range(100))
    yield 'udp4', RIGHT, ether(0x0800, ipv4(17, udp(data)))
    yield 'udp4-padded', RIGHT, ether(0x0800, ipv4(17, udp(data[:10]))) + bytes(20)
    yield 'udp4-options', RIGHT, ether(0x0800, ipv4(17, udp(data), options=b'\x01' * 8))
    yield 'udp4-marked', RIGHT, ether(0x0800, ipv4(17, udp(data), tos=3))
    yield 'udp4-fragment', RIGHT, ether(0x0800, ipv4(17, udp(data), frag=0x2000))
    yield 'udp4-longer', RIGHT, ether(0x0800, ipv4(17, udp(data), more=50))
    yield 'udp4-inner-longer', RIGHT, ether(0x0800, ipv4(17, udp(data, more=50)))
    yield 'udp4-vlan', RIGHT, ether(0x0800, ipv4(17, udp(data)), vlan=5)
    yield 'udp4-bad-sum', 1, ether(0x0800, ipv4(17, udp(data)))
    yield 'udp4-other', RIGHT, ether(0x0800, ipv4(17, udp(data), dst=bytes([10, 99, 0, 7])))
    yield 'udp4-group', 2, ether(0x0800, ipv4(17, udp(data), dst=bytes([224, 1, 2, 3])))
    yield 'udp6', RIGHT, ether(0x86dd, ipv6(17, udp(data)))
    yield 'udp6-longer', RIGHT, ether(0x86dd, ipv6(17, udp(data), more=9))
    yield 'udp6-extension', RIGHT, ether(0x86dd, ipv6(0, bytes([17, 0]) + bytes(6) + udp(data)))
    yield 'tcp4', RIGHT, ether(0x0800, ipv4(6, data))
    yield 'echo4', RIGHT, ether(0x0800, ipv4(1, struct.pack('>BBHHH', 8, 0, 0, 1, 2) + data))
    yield 'echo6', RIGHT, ether(0x86dd, ipv6(58, struct.pack('>BBHHH', 128, 0, 0, 1, 2) + data))
    yield 'arp-request', 0, ether(0x0806, arp(1, PEER4, OURS4)) + bytes(18)
    yield 'arp-reply', 1, ether(0x0806, arp(2, PEER4, OURS4)) + bytes(18)
    yield 'arp-short', 0, ether(0x0806, arp(1, PEER4, OURS4))[:30]
    solicit = struct.pack('>BBHI', 135, 0, 0, 0) + OURS6 + bytes([1, 1]) + PEER_MAC
    advert = struct.pack('>BBHI', 136, 0, 0, 0x60000000) + PEER6 + bytes([2, 1]) + PEER_MAC
    yield 'nd-solicit', RIGHT, ether(0x86dd, ipv6(58, solicit, hops=255))
    yield 'nd-solicit-near', RIGHT, ether(0x86dd, ipv6(58, solicit, hops=64))
    yield 'nd-advert', RIGHT, ether(0x86dd, ipv6(58, advert, hops=255))
    yield 'nd-option-0', RIGHT, ether(0x86dd, ipv6(58, solicit[:25] + b'\0' + solicit[26:], hops=255))
    yield 'lldp', 0, ether(0x88cc, data)
    yield 'runt', 0, PEER_MAC
    yield 'nothing', 0, b''


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(data)


def main():
    for name, data in packets():
        write(os.path.join(sys.argv[1], 'wire'), name, data)
    for name, what, data in frames():
        write(os.path.join(sys.argv[1], 'frame'), name, bytes([what]) + data)


if __name__ == '__main__':
    main()

#!/bin/bash
set -euo pipefail
cat > /app/decode.py <<'PYTHON'
"""Decode a TLM2 recording; see FORMAT.md."""

import binascii
import json
import struct
import sys


def varint(data, at, end):
    value = shift = 0
    while at < end:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 70:
            break
    return None, at


def signed(value):
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def header(data):
    (count,) = struct.unpack_from(">H", data, 4)
    at, names = 6, []
    for _ in range(count):
        length = data[at]
        names.append(data[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return names, struct.unpack_from(">Q", data, at)[0], at + 8


def payload_at(data, at):
    if data[at] != 0xA5:
        return None
    length, start = varint(data, at + 1, len(data))
    if length is None or not 1 <= length <= 1024 or start + length + 2 > len(data):
        return None
    payload = data[start : start + length]
    if binascii.crc_hqx(payload, 0xFFFF) != int.from_bytes(data[start + length : start + length + 2], "big"):
        return None
    return payload, start + length + 2


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    names, time, at = header(data)
    last, damaged = {}, 0
    while at < len(data):
        found = payload_at(data, at)
        if found is None:
            at, damaged = at + 1, damaged + 1
            continue
        payload, at = found
        sensor, here = varint(payload, 0, len(payload))
        delta, here = varint(payload, here, len(payload))
        time += signed(delta)
        kind, rest = payload[here], payload[here + 1 :]
        if kind == 0:
            value = signed(varint(rest, 0, len(rest))[0])
        elif kind == 1:
            (value,) = struct.unpack("<d", rest)
        elif kind == 2:
            value = rest.decode()
        else:
            value = last.get(sensor)
        last[sensor] = value
        print(json.dumps({"time": time, "sensor": names[sensor], "value": value}))
    print(json.dumps({"damaged": damaged}))


main(sys.argv[1])
PYTHON

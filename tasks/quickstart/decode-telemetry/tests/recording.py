"""Recordings made at random, and what must be printed for them."""

import binascii
import random
import struct

SENSORS = ("hull", "Außen", "p2", "a-very-long-name-" + "x" * 60)


def varint(value):
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


def header(base):
    names = b"".join(bytes([len(name.encode())]) + name.encode() for name in SENSORS)
    return b"TLM2" + struct.pack(">H", len(SENSORS)) + names + struct.pack(">Q", base)


def record(rng):
    """(bytes, sensor, delta, kind, value) of one record."""
    sensor, delta, kind = rng.randrange(len(SENSORS)), rng.randint(-50, 5000), rng.randrange(4)
    value = (rng.randint(-(2**40), 2**40), rng.uniform(-1e6, 1e6), "µ" * rng.randrange(90) + "\xa5", None)[kind]
    encoded = (zigzag(value) if kind == 0 else b"", struct.pack("<d", value) if kind == 1 else b"", str(value).encode(), b"")
    payload = varint(sensor) + zigzag(delta) + bytes([kind]) + encoded[kind]
    crc = struct.pack(">H", binascii.crc_hqx(payload, 0xFFFF))
    return b"\xa5" + varint(len(payload)) + payload + crc, sensor, delta, kind, value


def damage(rng, raw):
    """One record's bytes, damaged so that no part of them can be taken for a good record."""
    at, choice = rng.randrange(2, len(raw)), rng.randrange(3)
    if choice == 0:
        return raw[:at]
    if choice == 1:
        return raw[: at - 1] + bytes([raw[at - 1] ^ 0x11]) + raw[at:]
    return raw[:at] + b"\xa5" + raw[at:]


def good_at(data, at):
    """End of the good record that starts at `at`, or None."""
    length, shift, start = 0, 0, at + 1
    if data[at] != 0xA5:
        return None
    while start < len(data) and shift < 70:
        byte = data[start]
        length |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < 0x80:
            end = start + length + 2
            fits = 1 <= length <= 1024 and end <= len(data)
            right = fits and binascii.crc_hqx(data[start : end - 2], 0xFFFF) == int.from_bytes(data[end - 2 : end], "big")
            return end if right else None
    return None


def recording(rng, records, damaged_share):
    """(bytes, lines to print) of a random recording."""
    while True:
        base = rng.randrange(2**41)
        data, made = bytearray(header(base)), {}
        start = len(data)
        for _ in range(records):
            raw, *fields = record(rng)
            if rng.random() < damaged_share:
                data += damage(rng, raw)
                continue
            if rng.random() < damaged_share:
                data += rng.choice((b"\xa5", b"\xa5\x03", rng.randbytes(5)))
            made[len(data)] = fields
            data += raw
        lines = printed(bytes(data), start, base, made)
        if lines is not None:
            return bytes(data), lines


def printed(data, at, time, made):
    """What a decoder must print; None if what was damaged makes a good record by chance (one in 65,536)."""
    lines, last, damaged = [], {}, 0
    while at < len(data):
        end = good_at(data, at)
        if end is None:
            at, damaged = at + 1, damaged + 1
            continue
        if at not in made:
            return None
        sensor, delta, kind, value = made[at]
        time, last[sensor] = time + delta, last.get(sensor) if kind == 3 else value
        lines.append({"time": time, "sensor": SENSORS[sensor], "value": last[sensor]})
        at = end
    return [*lines, {"damaged": damaged}]

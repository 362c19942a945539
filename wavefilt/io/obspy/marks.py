"""Marks of the formats that ObsPy recognises by the name of a file alone, which it is never given."""

from __future__ import annotations

from wavefilt.io.detection import Check, Probe, starts_with

PACKETS = (b"AD", b"CD", b"DS", b"DT", b"EH", b"ET", b"OM", b"SH", b"SC", b"FD")
"""Types of the packets of REFTEK130, of 1024 bytes each."""
EXAMINED = 3600
"""Blocks that are examined at most."""


def _is_bcd(digits: bytes) -> bool:
    return digits.hex().isdecimal()


def is_win(probe: Probe) -> bool:
    """A chain of blocks of a second each, up to the end: size, then year to second in binary-coded decimals."""
    at = 0
    for _ in range(EXAMINED):
        (size,), time = probe.unpack(">I", at), probe.bytes(at + 4, 6)
        if len(time) < 6 or not _is_bcd(time) or size < 18:
            return False
        month, day, hour, minute, second = (int(byte) for byte in time.hex(" ").split()[1:])
        if not (0 < month < 13 and 0 < day < 32 and hour < 24 and minute < 60 and second < 60):
            return False
        at += size
        if at >= probe.size:
            return at == probe.size
    return True


def is_seisan(probe: Probe) -> bool:
    """Fortran records, the first of 80 characters; before version 7 with one byte before and after each."""
    head = probe.head
    if len(head) < 960:
        return False
    if head[:2] == b"KP":
        return head[82:83] == b"P"
    for order in ("<", ">"):
        for kind, width in (("I", 4), ("Q", 8)):
            if probe.unpack(order + kind, 0) == probe.unpack(order + kind, 80 + width) == (80,):
                return True
    return False


def is_reftek130(probe: Probe) -> bool:
    """Packets with a type, then experiment, year, unit, time, bytes and sequence in binary-coded decimals."""
    if probe.size < 1024 or probe.size % 1024:
        return False
    for at in range(0, min(probe.size, 20 << 10), 1024):
        packet = probe.bytes(at, 16)
        # the unit number, bytes 4 and 5, is hexadecimal
        if packet[:2] not in PACKETS or not _is_bcd(packet[2:4] + packet[6:16]) or int(packet[12:14].hex()) > 1024:
            return False
    return True


def is_dmx(probe: Probe) -> bool:
    """A chain of tagged structures up to one of type 7, which describes a trace."""
    at = 0
    for _ in range(EXAMINED):
        sync, _, kind, structure, content = probe.unpack("<2Bh2i", at)
        if sync != ord("S") or not 0 <= kind < 256 or structure < 0 or content < 0 or structure + content == 0:
            return False
        if kind == 7:
            return True
        at += 12 + structure + content
    return False


def is_y(probe: Probe) -> bool:
    """Nanometrics Y: tags of 16 bytes with the byte order and 31; the first, of type 0, is followed by another."""
    head = probe.head
    return head[:2] in (b"I\x1f", b"M\x1f") and head[2:4] == b"\0\0" and head[16:18] == head[:2]


MARKS: dict[str, Check] = {
    "pdas": starts_with(b"DATASET "),
    "seisan": is_seisan,
    "y": is_y,
    "reftek130": is_reftek130,
    "dmx": is_dmx,
    "win": is_win,
}
"""In the order in which they are tried: the weakest last."""

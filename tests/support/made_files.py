# SPDX-License-Identifier: Apache-2.0
"""Files of many types, made with the standard library and numpy alone, so that every machine has the same ones."""

from __future__ import annotations

import base64
import bz2
import difflib
import email.message
import gzip
import io
import json
import lzma
import marshal
import pickle
import plistlib
import random
import sqlite3
import struct
import tarfile
import wave
import zipfile
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import numpy as np

PROSE = (Path(__file__).parents[2] / "LICENSE").read_bytes()
WORDS = PROSE.decode().split()


def made(folder: Path) -> dict[str, bytes]:
    """Name to content.

    Args:
        folder: an empty one, for what can only be written to a file.
    """
    return {**_texts(), **_archives(), **_data(folder), **_media(), **_programs()}


def odd() -> dict[str, bytes]:
    """Files about which the model knows nothing, or nearly."""
    return {
        "empty": b"",
        "one byte": b"x",
        "seven bytes": b"import ",
        "eight bytes": b"import o",
        "seven bytes that are no text": b"\x89PNG\r\n\xff",
        "white space": b" \n\t" * 1000,
        "white space, then too little": b" " * 5000 + b"#!/bin/sh\n",
        "cut in a letter": b" " * 4095 + "ä".encode() * 20,
        "zero bytes": bytes(10_000),
        "random bytes": random.Random(1).randbytes(10_000),
        "random text": base64.b85encode(random.Random(1).randbytes(5_000)),
        "zeros at the end": b"#!/bin/sh\necho hello\n" + bytes(9_000),
        "byte order mark": "\ufeffimport os\nprint(os.name)\n".encode("utf-16"),
    }


def _texts() -> dict[str, bytes]:
    rows = [(number, WORDS[number], number / 7) for number in range(1, 200)]
    records = [{"id": number, "name": word, "value": value} for number, word, value in rows]
    paragraphs = "".join(f"<p class='x'>{' '.join(WORDS[at : at + 30])}</p>\n" for at in range(0, 300, 30))
    message = email.message.EmailMessage()
    message["Subject"], message["From"], message["To"] = "Licence", "a@example.org", "b@example.org"
    message["Date"], message["Message-ID"] = "Mon, 2 Nov 2026 10:00:00 +0000", "<1@example.org>"
    message.set_content(PROSE.decode())
    changed = [line.replace("the", "this") for line in PROSE.decode().splitlines(keepends=True)]
    return {
        "txt": PROSE,
        "json": json.dumps(records, indent=2).encode(),
        "jsonl": "".join(json.dumps(record) + "\n" for record in records).encode(),
        "csv": ("id,name,value\n" + "".join(f"{number},{word},{value:.3f}\n" for number, word, value in rows)).encode(),
        "tsv": ("id\tname\tvalue\n" + "".join(f"{a}\t{b}\t{c:.3f}\n" for a, b, c in rows)).encode(),
        "html": f"<!DOCTYPE html>\n<html><head><title>x</title></head><body>\n{paragraphs}</body></html>\n".encode(),
        "xml": (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rows>\n'
            + "".join(f'  <row id="{number}"><name>{word}</name></row>\n' for number, word, _ in rows)
            + "</rows>\n"
        ).encode(),
        "svg": (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">\n'
            + "".join(f'<circle cx="{n % 100}" cy="{n * 7 % 100}" r="2" fill="red"/>\n' for n in range(60))
            + "</svg>\n"
        ).encode(),
        "ini": "".join(f"[section{n}]\nname = {WORDS[n]}\nvalue = {n}\n\n" for n in range(40)).encode(),
        "toml": "".join(f'[table{n}]\nname = "{WORDS[n]}"\nvalues = [1, {n}]\n\n' for n in range(40)).encode(),
        "yaml": "".join(f"- id: {n}\n  name: {WORDS[n]}\n  tags:\n    - a\n    - b\n" for n in range(40)).encode(),
        "markdown": (
            "# Title\n\n" + "".join(f"## Part {n}\n\n* **{WORDS[n]}**: `{n}`\n* [link](x.md)\n\n" for n in range(40))
        ).encode(),
        "css": "".join(f".part{n} {{\n  margin: {n}px;\n  color: #abc;\n}}\n" for n in range(60)).encode(),
        "sql": (
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL);\n"
            + "".join(f"INSERT INTO rows (id, name) VALUES ({n}, '{word}');\n" for n, word, _ in rows)
        ).encode(),
        "srt": "".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{WORDS[n]}\n\n" for n in range(1, 59)).encode(),
        "ics": (
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\n"
            + "".join(
                f"BEGIN:VEVENT\r\nUID:{n}@x\r\nDTSTART:202611{n:02}T100000Z\r\nSUMMARY:{WORDS[n]}\r\nEND:VEVENT\r\n"
                for n in range(1, 29)
            )
            + "END:VCALENDAR\r\n"
        ).encode(),
        "m3u": ("#EXTM3U\n" + "".join(f"#EXTINF:{n},{WORDS[n]}\nsong{n}.mp3\n" for n in range(60))).encode(),
        "eml": message.as_bytes(),
        "diff": "".join(difflib.unified_diff(PROSE.decode().splitlines(keepends=True), changed, "a/x", "b/x")).encode(),
        "pem": (
            b"-----BEGIN CERTIFICATE-----\n"
            + base64.encodebytes(random.Random(1).randbytes(900))
            + b"-----END CERTIFICATE-----\n"
        ),
    }


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _archives() -> dict[str, bytes]:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("LICENSE")
        entry.size = len(PROSE)
        archive.addfile(entry, io.BytesIO(PROSE))
    return {
        "zip": _zip({"LICENSE": PROSE, "folder/NOTICE": PROSE}),
        "jar": _zip({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", "x/Main.class": b"\xca\xfe\xba\xbe"}),
        "gzip": gzip.compress(PROSE, mtime=0),
        "bzip": bz2.compress(PROSE),
        "xz": lzma.compress(PROSE),
        "zlib": zlib.compress(PROSE),
        "tar": tar.getvalue(),
        "tar.gz": gzip.compress(tar.getvalue(), mtime=0),
    }


def _data(folder: Path) -> dict[str, bytes]:
    database = folder / "made.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("create table words (word text)")
        connection.executemany("insert into words values (?)", [(word,) for word in WORDS])
    connection.close()
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.arange(1000.0))
    np.savez(npz, first=np.arange(1000.0), second=np.eye(30))
    return {
        "sqlite": database.read_bytes(),
        "npy": npy.getvalue(),
        "npz": npz.getvalue(),
        "pickle": pickle.dumps([{"name": word} for word in WORDS[:300]]),
        "plist": plistlib.dumps({word: number for number, word in enumerate(WORDS[:100])}),
        "binary plist": plistlib.dumps(
            {word: number for number, word in enumerate(WORDS[:100])}, fmt=plistlib.FMT_BINARY
        ),
        "pcap": struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        + b"".join(struct.pack("<IIII", 1_700_000_000 + n, n, 60, 60) + bytes(range(60)) for n in range(50)),
    }


def _media() -> dict[str, bytes]:
    pixels = bytes(value for y in range(64) for x in range(64) for value in (x * 4, y * 4, (x ^ y) * 4))
    lines = b"".join(b"\0" + pixels[row * 192 : row * 192 + 192] for row in range(64))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    sound = io.BytesIO()
    with wave.open(sound, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes((np.sin(np.arange(8000) / 10) * 20_000).astype("<i2").tobytes())
    notes = b"".join(bytes([0, 0x90, 40 + n % 40, 64, 96, 0x80, 40 + n % 40, 64]) for n in range(100)) + b"\0\xff\x2f\0"
    return {
        "png": b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b""),
        "bmp": struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, 64, 64, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
        + pixels,
        "wav": sound.getvalue(),
        "midi": b"MThd" + struct.pack(">IHHH", 6, 0, 1, 96) + b"MTrk" + struct.pack(">I", len(notes)) + notes,
    }


def _programs() -> dict[str, bytes]:
    source = "".join(f"def part{n}(x):\n    return [x + {n} for _ in range({n})]\n\n\n" for n in range(40))
    code = marshal.dumps(compile(source, "made.py", "exec"))
    functions = range(40)
    return {
        "python": f"import sys\n\n\n{source}".encode(),
        "pyc": MAGIC_NUMBER + struct.pack("<III", 0, 1_700_000_000, len(source)) + code,
        "shell": ("#!/bin/sh\nset -eu\n" + "".join(f'test -e "$1" || echo part{n}\n' for n in functions)).encode(),
        "c": (
            "#include <stdio.h>\n#include <stdlib.h>\n\n"
            + "".join(f"static int part{n}(const char *x) {{\n    return puts(x) + {n};\n}}\n\n" for n in functions)
        ).encode(),
        "java": (
            "package org.example;\n\nimport java.util.List;\n\npublic class Made {\n"
            + "".join(f"    public int part{n}(List<String> x) {{ return x.size() + {n}; }}\n" for n in functions)
            + "}\n"
        ).encode(),
        "javascript": (
            "'use strict';\nconst fs = require('fs');\n"
            + "".join(f"function part{n}(x) {{\n  const y = x.map((z) => z + {n});\n}}\n" for n in functions)
            + "module.exports = { part0 };\n"
        ).encode(),
        "go": (
            'package main\n\nimport "fmt"\n\n'
            + "".join(f"func part{n}(x int) int {{\n\tfmt.Println(x)\n\treturn x + {n}\n}}\n\n" for n in functions)
        ).encode(),
        "rust": (
            "use std::collections::HashMap;\n\n"
            + "".join(f"fn part{n}(x: &HashMap<u8, i32>) -> usize {{\n    x.len() + {n}\n}}\n\n" for n in functions)
        ).encode(),
        "php": ("<?php\n" + "".join(f"function part{n}($x) {{\n  return $x + {n};\n}}\n" for n in functions)).encode(),
        "makefile": (
            "CFLAGS = -O2\n\nall: " + " ".join(f"part{n}.o" for n in functions) + "\n\n"
            + "".join(f"part{n}.o: part{n}.c\n\t$(CC) $(CFLAGS) -c $< -o $@\n\n" for n in functions)
        ).encode(),
        "dockerfile": (
            "FROM debian:12\nRUN apt-get update && apt-get install -y curl\nWORKDIR /app\n"
            + "".join(f"COPY part{n} /app/part{n}\n" for n in functions) + 'ENTRYPOINT ["/app/part0"]\n'
        ).encode(),
        "latex": (
            "\\documentclass{article}\n\\begin{document}\n"
            + "".join(f"\\section{{Part {n}}}\n{' '.join(WORDS[n * 9 : n * 9 + 9])} $x_{n}^2$\n" for n in functions)
            + "\\end{document}\n"
        ).encode(),
    }  # fmt: skip

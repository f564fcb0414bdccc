# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Characters of the running Python's own standard library, split by file."""

from __future__ import annotations

import hashlib
import sysconfig
import tokenize
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Line feed, the printable ASCII characters, and one symbol for everything else.
OTHER = "\ufffd"
ALPHABET = "\n" + "".join(chr(code) for code in range(0x20, 0x7F)) + OTHER
VOCAB_SIZE = len(ALPHABET)
# Between two files, so that neither a context nor a count runs from one file into the next unseen.
FILE_BREAK = "\n" * 4

# Generated for one machine, not written by anybody.
_SKIPPED_PREFIXES = ("_sysconfigdata",)
_HELD_OUT_OF = 10

# Index 0x80 stands for all that is not ASCII.
_CODE_TO_ID = np.full(0x81, VOCAB_SIZE - 1, dtype=np.uint8)
for _index, _char in enumerate(ALPHABET[:-1]):
    _CODE_TO_ID[ord(_char)] = _index


def encode(text: str) -> np.ndarray:
    """Symbol numbers (uint8) of a text; a character outside the alphabet becomes OTHER."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    codes = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype="<u4")
    return _CODE_TO_ID[np.minimum(codes, 0x80)]


def decode(ids) -> str:
    """The text of symbol numbers."""
    return "".join(ALPHABET[int(i)] for i in ids)


@dataclass(frozen=True)
class Corpus:
    """Training and held-out text as symbol numbers, with the files that they come from."""

    train: np.ndarray
    held_out: np.ndarray
    train_files: tuple[str, ...]
    held_out_files: tuple[str, ...]
    # Start of each file inside the concatenated text, in the order of the file lists.
    train_starts: np.ndarray


def is_held_out(name: str) -> bool:
    """Split by a hash of the file's name alone: adding a file never moves another one."""
    return hashlib.blake2b(name.encode(), digest_size=4).digest()[0] % _HELD_OUT_OF == 0


def find_sources(root: Path | None = None) -> list[Path]:
    """The modules lying directly in the library's folder, sorted by name."""
    root = Path(sysconfig.get_path("stdlib") if root is None else root)
    found = [p for p in root.glob("*.py") if not p.name.startswith(_SKIPPED_PREFIXES)]
    return sorted(found, key=lambda path: path.name)


def _concatenate(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    pieces = [encode(text + FILE_BREAK) for text in texts]
    starts = np.cumsum([0] + [len(piece) for piece in pieces])[:-1]
    return np.concatenate(pieces), starts


def load_corpus(root: Path | None = None) -> Corpus:
    """Read the sources and split them; the same library always gives the same corpus."""
    texts: dict[bool, list[str]] = {False: [], True: []}
    names: dict[bool, list[str]] = {False: [], True: []}
    for path in find_sources(root):
        name = path.name
        try:
            with tokenize.open(path) as stream:
                text = stream.read()
        except (SyntaxError, UnicodeDecodeError):
            continue
        if not text.strip():
            continue
        held_out = is_held_out(name)
        texts[held_out].append(text)
        names[held_out].append(name)
    for held_out, part in ((False, "training"), (True, "held-out")):
        if not texts[held_out]:
            raise RuntimeError(
                f"the {part} part of the corpus is empty: expected Python sources under "
                f"{sysconfig.get_path('stdlib') if root is None else root}, found "
                f"{len(names[False]) + len(names[True])} usable file(s)"
            )
    train, starts = _concatenate(texts[False])
    held_out_text, _ = _concatenate(texts[True])
    return Corpus(train, held_out_text, tuple(names[False]), tuple(names[True]), starts)

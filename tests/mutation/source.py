# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""As much C++ as finding call sites takes: text without comments and strings, balanced brackets,
calls with their template and function arguments, statements."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

OPEN = {"(": ")", "[": "]", "{": "}"}
_NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""",
    re.DOTALL,
)


def blank(text):
    """Spaces for every character but line ends."""
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Call:
    """name<template>(arguments); every pair is a span of the source."""

    name: str
    receiver: str  # what stands in front of the name: "AscendC::", "full_.", "ring_.", ""
    span: tuple[int, int]  # receiver to closing parenthesis
    template: tuple[int, int] | None  # between the angle brackets
    arguments: tuple[tuple[int, int], ...]

    @property
    def start(self):
        return self.span[0]


class Source:
    """One file. Positions in `code` (no comments, no strings, no directives) are positions in
    `text`."""

    def __init__(self, name, text):
        self.name = name
        self.text = text
        code = _NOISE.sub(lambda m: blank(m.group()), text)
        self.code = re.sub(
            r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: blank(m.group()), code, flags=re.MULTILINE
        )

    @cached_property
    def _lines(self):
        return [0] + [m.end() for m in re.finditer("\n", self.text)]

    def line(self, position):
        return bisect_right(self._lines, position)

    def slice(self, span):
        return self.text[span[0] : span[1]]

    def closing(self, position):
        """Where the bracket at `position` closes."""
        stack = []
        for i in range(position, len(self.code)):
            c = self.code[i]
            if c in OPEN:
                stack.append(OPEN[c])
            elif c in ")]}":
                if c != stack.pop():
                    raise ValueError(f"{self.name}:{self.line(i)}: unbalanced {c}")
                if not stack:
                    return i
        raise ValueError(f"{self.name}:{self.line(position)}: never closed")

    def split(self, start, end):
        """Spans between the commas of [start, end), those inside brackets apart, trimmed."""
        spans, depth, first = [], 0, start
        for i in range(start, end):
            c = self.code[i]
            depth += c in "([{<"
            # -> and comparisons do not close anything
            depth -= c in ")]}" or (c == ">" and self.code[i - 1] != "-" and depth > 0)
            if c == "," and depth == 0:
                spans.append(self._trimmed(first, i))
                first = i + 1
        if self.code[first:end].strip() or spans:
            spans.append(self._trimmed(first, end))
        return tuple(spans)

    def _trimmed(self, start, end):
        while start < end and self.code[start].isspace():
            start += 1
        while end > start and self.code[end - 1].isspace():
            end -= 1
        return start, end

    def calls(self, names):
        """Calls (and declarations, which look alike) of functions whose name matches `names`."""
        pattern = re.compile(
            rf"((?:\b\w+(?:<[\w\s,:]*>)?\s*(?:\.|->|::)\s*)*)(?:template\s+)?\b({names})\s*(?=[<(])"
        )
        for match in pattern.finditer(self.code):
            position, template = match.end(), None
            if self.code[position] == "<":
                close = self._closing_angle(position)
                if close is None:
                    continue
                template = (position + 1, close)
                position = close + 1
                while self.code[position].isspace():
                    position += 1
                if self.code[position] != "(":
                    continue
            end = self.closing(position)
            yield Call(
                match.group(2),
                re.sub(r"\s", "", match.group(1)),
                (match.start(), end + 1),
                template,
                self.split(position + 1, end),
            )

    def _closing_angle(self, position):
        depth = 0
        for i in range(position, len(self.code)):
            c = self.code[i]
            if c == "<":
                depth += 1
            elif c == ">":
                depth -= 1
                if depth == 0:
                    return i
            elif c in ";{":
                return None
        return None

    def is_statement(self, call):
        """Whether the call is a statement of its own, so that nothing uses its value."""
        before = self.code[: call.span[0]].rstrip()
        after = self.code[call.span[1] :].lstrip()
        return after.startswith(";") and (before[-1:] in ("", ";", "{", "}", ")"))

    def function_at(self, position):
        """Name of the function whose body holds `position`, "" outside."""
        for name, start, end in self._functions:
            if start < position < end:
                return name
        return ""

    @cached_property
    def _functions(self):
        found = []
        for match in re.finditer(r"__aicore__[^;{}=]*?\b(~?\w+)\s*\(", self.code):
            end = self.closing(match.end() - 1)
            body = re.compile(r"\s*(?:const\b)?\s*(?::[^;]*?\))?\s*\{").match(self.code, end + 1)
            if body:
                found.append((match.group(1), body.end() - 1, self.closing(body.end() - 1)))
        return found

    def subscripts(self):
        """(name, position of "[") of every subscript expression; not lambdas, declarations or
        arrays of plain variables that the file declares."""
        declared = r"\b(?!return\b)[\w>]+[\s&*]+(\w+)\s*\[[^\]]*\]\s*(?:=|;)"
        arrays = set(re.findall(declared, self.code))
        for match in re.finditer(r"(\w+|\)|\])\s*\[", self.code):
            if match.group(1) not in arrays and match.group(1) not in ("return", "operator"):
                yield match.group(1), match.end() - 1


def apply(text, edits):
    """The text with (start, end, replacement) edits, none overlapping. A replacement keeps the
    number of lines, so that later line numbers stay what they are."""
    edits = sorted(edits)
    for (_, end, _), (start, _, _) in zip(edits, edits[1:]):
        if start < end:
            raise ValueError("overlapping edits")
    for start, end, replacement in reversed(edits):
        lines = text.count("\n", start, end) - replacement.count("\n")
        if lines < 0:
            raise ValueError("an edit adds lines")
        text = text[:start] + replacement + "\n" * lines + text[end:]
    return text

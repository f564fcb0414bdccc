# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A C++ file as the text rules see it: comments and literals blanked, tokens with lines, scopes."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_BLANKED = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*|::|->|\S")
_CONTROL = {"if", "for", "while", "switch", "catch", "else", "do", "return", "try"}
_TYPES = {"class", "struct", "union", "enum", "namespace"}


@dataclass(frozen=True)
class Token:
    text: str
    line: int


@dataclass(frozen=True)
class Function:
    """A function definition: its name, the line of the name, and the tokens up to the brace."""

    name: str
    line: int
    head: tuple
    body: tuple


def _blank(match):
    text = match.group()
    keep = text[0] if text[0] in "\"'" else ""
    inner = re.sub(r"[^\n]", " ", text[len(keep) : len(text) - len(keep)])
    return keep + inner + keep


class Source:
    def __init__(self, path, text=None):
        self.path = Path(path)
        self.raw = self.path.read_text() if text is None else text
        self.code = _BLANKED.sub(_blank, self.raw)
        self.raw_lines = self.raw.splitlines()
        self.lines = self.code.splitlines()

    def find(self, pattern):
        """(line, match) of every match in the code."""
        for match in re.finditer(pattern, self.code, re.MULTILINE):
            yield self.code.count("\n", 0, match.start()) + 1, match

    def comment_near(self, line, word):
        """True when a comment with `word` stands on the line or on the one above."""
        near = self.raw_lines[max(line - 2, 0) : line]
        return any("//" in text and word in text.split("//", 1)[1] for text in near)

    @cached_property
    def tokens(self):
        """All tokens outside preprocessor lines."""
        tokens = []
        continued = False
        for number, line in enumerate(self.lines, 1):
            directive = continued or line.lstrip().startswith("#")
            continued = directive and line.rstrip().endswith("\\")
            if not directive:
                tokens += [Token(m.group(), number) for m in _TOKEN.finditer(line)]
        return tokens

    @cached_property
    def functions(self):
        """Function definitions at namespace and class scope."""
        found = []
        self._scan(0, found)
        return found

    def _scan(self, start, found):
        """Reads declarations from `start` to the closing brace; returns the index behind it."""
        head, index, tokens = [], start, self.tokens
        while index < len(tokens):
            text = tokens[index].text
            if text == "}":
                return index + 1
            if text == ";":
                head, index = [], index + 1
            elif text == ":" and head and head[-1].text in {"public", "private", "protected"}:
                head, index = [], index + 1
            elif text == "{":
                index = self._open(head, index, found)
                head = head if self._is_initialiser(head) else []
            else:
                head.append(tokens[index])
                index += 1
        return index

    @staticmethod
    def _is_initialiser(head):
        return "=" in [t.text for t in head] and not _outer_parens(head)

    def _open(self, head, index, found):
        words = [t.text for t in _without_templates(head)]
        if self._is_initialiser(head):
            return self.matching(index) + 1
        if _outer_parens(head) and not (words and words[0] in _TYPES):
            end = self.matching(index)
            # In `A() : x_{1} {}` the brace after the list's last `}` starts the body.
            while self._in_init_list(head, index):
                head += self.tokens[index : end + 1]
                index = end + 1
                while index < len(self.tokens) and self.tokens[index].text != "{":
                    head.append(self.tokens[index])
                    index += 1
                end = self.matching(index)
            name = _function_name(head)
            body = tuple(self.tokens[index + 1 : end])
            found.append(Function(name.text, name.line, tuple(head), body))
            return end + 1
        if "enum" in words:
            return self.matching(index) + 1
        if not words or words[0] in _TYPES or "extern" in words or _TYPES & set(words):
            return self._scan(index + 1, found)
        return self.matching(index) + 1  # a member with a braced initialiser

    def _in_init_list(self, head, index):
        """True when the brace belongs to a member in a constructor's initialiser list."""
        words = [t.text for t in head]
        if ":" not in words or not words[-1].isidentifier() or words[-1] in {"const", "override"}:
            return False
        close = max(i for i, w in enumerate(words) if w == ":")
        return ")" in words[:close]

    def matching(self, index):
        """Index of the brace that closes the one at `index`."""
        depth = 0
        for i in range(index, len(self.tokens)):
            depth += {"{": 1, "}": -1}.get(self.tokens[i].text, 0)
            if depth == 0:
                return i
        return len(self.tokens) - 1


def _without_templates(tokens):
    """The tokens without a leading template<...> and without attributes."""
    words = list(tokens)
    while words and words[0].text == "template":
        depth = 0
        for i, token in enumerate(words):
            depth += {"<": 1, ">": -1}.get(token.text, 0)
            if depth == 0 and i > 0:
                words = words[i + 1 :]
                break
        else:
            return []
    return words


def _outer_parens(head):
    return any(t.text == "(" for t in _without_templates(head))


def _function_name(head):
    words = _without_templates(head)
    for i, token in enumerate(words):
        if token.text == "(" and i > 0:
            return words[i - 1]
    return words[0]


def loop_ranges(body):
    """(first, last) token index of every loop body in a function's body, headers excluded."""
    ranges = []
    for i, token in enumerate(body):
        if token.text in {"for", "while"} and i + 1 < len(body) and body[i + 1].text == "(":
            close = _close(body, i + 1, "(", ")")
            if close + 1 >= len(body) or body[close + 1].text == ";":
                continue
            ranges.append((close + 1, _statement_end(body, close + 1)))
        elif token.text == "do" and i + 1 < len(body) and body[i + 1].text == "{":
            ranges.append((i + 1, _close(body, i + 1, "{", "}")))
    return ranges


def _close(body, index, left, right):
    depth = 0
    for i in range(index, len(body)):
        depth += {left: 1, right: -1}.get(body[i].text, 0)
        if depth == 0:
            return i
    return len(body) - 1


def _statement_end(body, index):
    if body[index].text == "{":
        return _close(body, index, "{", "}")
    if body[index].text in {"for", "while", "if"}:
        return _statement_end(body, _close(body, index + 1, "(", ")") + 1)
    for i in range(index, len(body)):
        if body[i].text == ";":
            return i
    return len(body) - 1

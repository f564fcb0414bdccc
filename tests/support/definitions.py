# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Which classes and functions with external linkage the kernel sources of a library define, where.

CANN compiles each kernel on its own; the simulator links all of them into one library. Two kernels
that give one name to different things would then share whichever the linker keeps, without a word.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from cpp_source import Source  # noqa: E402

_TYPES = {"class", "struct", "union", "enum"}
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def _skip(words, index, left, right):
    """Index behind the bracket that closes the one at `index`."""
    depth = 0
    for i in range(index, len(words)):
        depth += {left: 1, right: -1}.get(words[i], 0)
        if depth == 0:
            return i + 1
    return len(words)


def _declaration(words):
    """(kind, name) of what the brace behind `words` opens: namespace, type, function or other."""
    while words[:1] == ["template"]:
        words = words[_skip(words, 1, "<", ">") :]
    if words[:1] == ["inline"] and words[1:2] == ["namespace"]:
        words = words[1:]
    if words[:1] == ["namespace"]:
        return "namespace", "".join(words[1:])
    if words[:1] == ["extern"] and "(" not in words:
        return "extern", ""
    if words and words[0] in _TYPES:
        at = 1
        while at < len(words) and (words[at] in _TYPES or words[at] in {"alignas", "[", "("}):
            if words[at] == "[":
                at = _skip(words, at, "[", "]")
            else:
                at = _skip(words, at, "(", ")") if words[at] == "(" else at + 1
        if "(" not in words[at:] and "=" not in words[at:]:
            end = at + 1
            if words[end : end + 1] == ["<"]:  # a specialisation is a class of its own
                end = _skip(words, end, "<", ">")
            return "type", "".join(words[at:end])
    if "(" in words and "=" not in words[: words.index("(")]:
        at = words.index("(")
        # Without a return type it is a constructor or a macro.
        if at >= 2 and "static" not in words:
            start = at - 1
            while start >= 2 and words[start - 1] == "::":
                start -= 2
            if start >= 1:
                return "function", "".join(words[start:at])
    return "other", ""


def definitions(path):
    """{(kind, qualified name)} of types and functions at namespace scope, nested types included,
    without what unnamed namespaces and function bodies hide."""
    found, scopes, head = set(), [], []
    for token in Source(path).tokens:
        if token.text == "{":
            kind, name = _declaration(head)
            visible = all(outer in {"namespace", "extern", "type"} for outer, _ in scopes)
            named = all(text or outer == "extern" for outer, text in scopes)
            in_type = any(outer == "type" for outer, _ in scopes)
            if (
                visible
                and named
                and name
                and (kind == "type" or kind == "function" and not in_type)
            ):
                qualified = "::".join([text for _, text in scopes if text] + [name])
                found.add((kind, qualified))
            scopes.append((kind, name))
            head = []
        elif token.text == "}":
            if scopes:
                scopes.pop()
            head = []
        elif token.text == ";":
            head = []
        elif token.text == ":" and head and head[-1] in {"public", "private", "protected"}:
            head = []
        else:
            head.append(token.text)
    return found


def _unit(path):
    """The file and all that it includes by relative paths."""
    files, waiting = set(), [path.resolve()]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.add(file)
            near = [file.parent / name for name in _INCLUDE.findall(file.read_text())]
            waiting += [other.resolve() for other in near if other.is_file()]
    return files


def clashes(kernels):
    """A line for every name that two kernels of one library give to different things."""
    units = [_unit(Path(kernel)) for kernel in kernels]
    places = defaultdict(set)
    for file in set().union(*units):
        for name in definitions(file):
            places[name].add(file)

    def together(files):
        return any(files <= unit for unit in units)

    problems = []
    for (kind, name), files in sorted(places.items(), key=lambda item: item[0][1]):
        # Overloads live in headers that are included together: the compiler sees them all.
        if len(files) > 1 and (kind == "type" or not together(files)):
            where = ", ".join(sorted(file.name for file in files))
            problems.append(f"{kind} {name} is defined in {where}")
    return problems

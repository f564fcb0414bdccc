# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Finds the mutants in the kernel sources: one function a kind, none knows a kernel by name."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

from tests.mutation.source import Source, apply

KINDS = ("flag", "barrier", "queue", "cross", "padding", "buffer", "offset")
# Kinds that no result can show while kernels run in program order: only a report catches them.
SYNCHRONISATION = ("flag", "barrier", "queue", "cross")

# Another source or destination pipe for an event, on the same kind of core. The scalar pipe is the
# source that stands behind nothing: other pipes may have waited for the right one.
OTHER_SOURCE = {
    "V_MTE2": "S_MTE2",
    "MTE2_V": "S_V",
    "V_MTE3": "S_MTE3",
    "MTE3_V": "S_V",
    "MTE3_MTE2": "S_MTE2",
    "MTE2_MTE3": "S_MTE3",
    "FIX_MTE2": "S_MTE2",
}
OTHER_DESTINATION = {
    "V_MTE2": "V_MTE3",
    "MTE2_V": "MTE2_MTE3",
    "V_MTE3": "V_MTE2",
    "MTE3_V": "MTE3_MTE2",
    "MTE3_MTE2": "MTE3_V",
    "MTE2_MTE3": "MTE2_V",
    "FIX_MTE2": "FIX_MTE1",
}
# The pipe of a cross-core set: one of the same core that neither writes nor reads the slot.
OTHER_PIPE = {"PIPE_FIX": "PIPE_MTE2", "PIPE_MTE3": "PIPE_MTE2", "PIPE_MTE2": "PIPE_MTE1"}

# What buffers and offsets lose: the bytes of a repeat, the elements of a 16 x 16 fractal.
ROW = 256
BUFFER_STEP = {"A2": 512, "B2": 512, "CO1": 1024}  # their memories have coarser alignment


@dataclass(frozen=True)
class Mutant:
    kind: str
    what: str
    file: str
    line: int
    edits: tuple[tuple[str, int, int, str], ...]  # file, start, end, replacement

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    @property
    def name(self):
        """Without the line: what survivors.toml says must hold when lines move."""
        return f"{self.kind} {self.file} {self.what}"

    @property
    def files(self):
        return sorted({edit[0] for edit in self.edits})

    def texts(self, sources):
        """{file: mutated text}."""
        by_file = defaultdict(list)
        for file, start, end, replacement in self.edits:
            by_file[file].append((start, end, replacement))
        return {file: apply(sources[file].text, edits) for file, edits in by_file.items()}


def load(folder):
    """{name: Source} of a folder's kernel files."""
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".cpp", ".h"))
    return {
        path.relative_to(folder).as_posix(): Source(
            path.relative_to(folder).as_posix(), path.read_text()
        )
        for path in files
    }


def translation_units(sources, files):
    """The .cpp files that one of `files` is part of."""
    reached = {}

    def reach(name):
        if name not in reached:
            reached[name] = {name}
            folder = name.rpartition("/")[0]
            for include in re.findall(
                r'^\s*#\s*include\s+"([^"]+)"', sources[name].text, flags=re.MULTILINE
            ):
                for candidate in (f"{folder}/{include}" if folder else include, include):
                    if candidate in sources:
                        reached[name] |= reach(candidate)
                        break
        return reached[name]

    return sorted(n for n in sources if n.endswith(".cpp") and reach(n) & set(files))


def find(sources, kinds=KINDS):
    """Every mutant, in the order of kind, file and line; names are unique."""
    mutants = []
    for kind in kinds:
        found = []
        for source in sources.values():
            found += FINDERS[kind](source)
        found += WHOLE_TREE.get(kind, lambda sources: [])(sources)
        mutants += sorted(found, key=lambda m: (m.file, m.line, m.what))
    return _unique(mutants)


def _unique(mutants):
    """The second of two mutants that look alike becomes "... (2)"."""
    seen = Counter()
    out = []
    for mutant in mutants:
        seen[mutant.name] += 1
        if seen[mutant.name] > 1:
            mutant = replace(mutant, what=f"{mutant.what} ({seen[mutant.name]})")
        out.append(mutant)
    return out


def _mutant(kind, what, source, position, edits):
    function = source.function_at(position)
    what += f" in {function}" if function else ""
    full = tuple((source.name, *edit) for edit in edits)
    return Mutant(kind, what, source.name, source.line(position), full)


def _gone(call):
    return (*call.span, "")


# ---------------------------------------------------------------------------- flag, barrier


def flags(source):
    """Every pair of a set and its wait: gone, and with another source or destination pipe."""
    groups = defaultdict(lambda: ([], []))
    for call in source.calls("SetFlag|WaitFlag"):
        if call.template and source.is_statement(call):
            key = (source.slice(call.template), *map(source.slice, call.arguments))
            groups[key][call.name == "WaitFlag"].append(call)
    for (event, *_), (sets, waits) in groups.items():
        if sets and waits:
            yield from _pair(source, sets[0].start, event, sets + waits)
    for call in source.calls("SyncPipes"):
        if call.template and source.is_statement(call):
            yield from _pair(source, call.start, source.slice(call.template), [call])


def _pair(source, position, event, calls):
    short = event.rpartition("::")[2]
    yield _mutant("flag", f"{short} removed", source, position, map(_gone, calls))
    for what, table in (("source", OTHER_SOURCE), ("destination", OTHER_DESTINATION)):
        if short in table:
            weak = event[: -len(short)] + table[short]
            edits = [(*call.template, weak) for call in calls]
            what = f"{short} with another {what}: {table[short]}"
            # A pair whose id was taken for its own event must take the other event's.
            edits += [
                (*call.template, weak)
                for call in source.calls("AllocEventID|ReleaseEventID")
                if call.template and source.slice(call.template) == event and len(calls) > 1
            ]
            yield _mutant("flag", what, source, position, edits)


def barriers(source):
    for call in source.calls("PipeBarrier"):
        if call.template and source.is_statement(call):
            what = source.slice(call.template)
            yield _mutant("barrier", what, source, call.start, [_gone(call)])


# ---------------------------------------------------------------------------- queue


def queues(source):
    """Hand-overs that come too early: EnQue right behind AllocTensor, before the data is there, and
    FreeTensor right behind DeQue, before the data is used. The data still goes the same way."""
    for begin, end, wrapper in (
        ("AllocTensor", "EnQue", "AllocEnQue"),
        ("DeQue", "FreeTensor", "DeQueFree"),
    ):
        queued = defaultdict(lambda: defaultdict(lambda: ([], [])))
        for call in source.calls(f"{begin}|{end}"):
            if call.receiver.endswith("."):
                function = source.function_at(call.start)
                queued[call.receiver[:-1]][function][call.name == end].append(call)
        for queue, functions in queued.items():
            apart = ([], [])  # helpers that only begin or only end
            for begins, ends in functions.values():
                if begins and ends:
                    for group in _hand_overs(begins, ends):
                        yield _early(source, queue, wrapper, end, *group)
                else:
                    apart[0].extend(begins)
                    apart[1].extend(ends)
            if apart[0] and apart[1]:
                yield _early(source, queue, wrapper, end, *apart)


def _hand_overs(begins, ends):
    """Of one function: every begin with the ends that follow it, or all of them as one."""
    groups = []
    for i, begin in enumerate(begins):
        limit = begins[i + 1].start if i + 1 < len(begins) else float("inf")
        groups.append(([begin], [e for e in ends if begin.start < e.start < limit]))
    whole = all(group[1] for group in groups) and ends[0].start > begins[0].start
    return groups if whole else [(begins, ends)]


def _early(source, queue, wrapper, end, begins, ends):
    edits = [_gone(call) for call in ends]
    for call in begins:
        kind = source.slice(call.template)
        edits.append((*call.span, f"::weaken::{wrapper}<{kind}>({queue})"))
    return _mutant("queue", f"{queue}.{end} too early", source, begins[0].start, edits)


# ---------------------------------------------------------------------------- cross


def crosses(source):
    """Flags set and waited for by hand, grouped by class and flag; SyncAll; the drain of a ring."""
    groups = defaultdict(list)
    for call in source.calls("CrossCoreSetFlag|CrossCoreWaitFlag"):
        if source.is_statement(call):
            groups[_class_at(source, call.start), source.slice(call.arguments[0])].append(call)
    for (owner, flag), calls in groups.items():
        names = {call.name for call in calls}
        if len(names) == 2:
            what = f"{owner + ' ' if owner else ''}{flag} removed"
            yield _mutant("cross", what, source, calls[0].start, map(_gone, calls))
        for call in calls:
            if call.name == "CrossCoreSetFlag":
                mode, pipe = map(source.slice, source.split(*call.template))
                if pipe in OTHER_PIPE:
                    weak = f"{mode}, {OTHER_PIPE[pipe]}"
                    what = f"{owner + ' ' if owner else ''}{flag} set on {OTHER_PIPE[pipe]}"
                    edits = [(*call.template, weak)]
                    yield _mutant("cross", what, source, call.start, edits)
    syncs = [call for call in source.calls("SyncAll") if source.is_statement(call)]
    if syncs:
        yield _mutant("cross", "SyncAll removed", source, syncs[0].start, map(_gone, syncs))
    for call in source.calls("Drain"):
        if call.receiver and source.is_statement(call):
            what = f"{call.receiver}Drain() removed"
            yield _mutant("cross", what, source, call.start, [_gone(call)])
    # A ring's pipes are template arguments of its aliases.
    for match in re.finditer(r"using (\w+Ring) =\s*WorkspaceRing<([^;]*)>;", source.code):
        start = match.start(2)
        spans = source.split(start, match.end(2))
        for span, side in zip(spans[-2:], ("ready", "free")):
            weak = OTHER_PIPE[source.slice(span)]
            if source.slice(span) == "PIPE_MTE2" and match.group(1).startswith("CubeToVector"):
                weak = "PIPE_MTE3"  # the vector cores have no MTE1
            what = f"{match.group(1)} {side} set on {weak}"
            yield _mutant("cross", what, source, span[0], [(*span, weak)])


def _class_at(source, position):
    """The innermost class or struct around a position."""
    best = ""
    for match in re.finditer(r"\b(?:class|struct)\s+(\w+)[^;{}()]*\{", source.code):
        if match.end() <= position < source.closing(match.end() - 1):
            best = match.group(1)
    return best


def edges(sources):
    """Every edge between the cores of a block that is named by an alias or written out, and the
    edges of every ring: its sets and waits gone in all files, or its set on another pipe."""
    aliases, rings = {}, {}
    form = re.compile(r"(CubeToVectorFlag|VectorToCubeFlag)<([^<>]*)>")
    for source in sources.values():
        for match in re.finditer(rf"using (\w+) =\s*{form.pattern};", source.code):
            aliases[match.group(1)] = match.groups()[1:]
        for match in re.finditer(r"using (\w+) =\s*(\w+Ring)<([^<>;]*)>;", source.code):
            if match.group(2) != "WorkspaceRing" and "kReady" not in match.group(3):
                rings[match.group(1)] = (source, match)
    calls = defaultdict(list)
    for source in sources.values():
        for match in re.finditer(r"\b(\w+|\w+<\w+>)::(Set|Wait)\(\)", source.code):
            name = match.group(1)
            if name in aliases or form.fullmatch(name):
                calls[name].append((source, match))
    for name, uses in calls.items():
        direction, flag = aliases.get(name) or form.fullmatch(name).groups()
        pipe = OTHER_PIPE["PIPE_FIX" if direction.startswith("Cube") else "PIPE_MTE3"]
        sets = [use for use in uses if use[1].group(2) == "Set"]
        first = sets[0]
        removed = tuple((s.name, *m.span(), "") for s, m in uses)
        place = (first[0].name, first[0].line(first[1].start()))
        yield Mutant("cross", f"{name} removed", *place, removed)
        weak = f"AscendC::CrossCoreSetFlag<::kda::kBlockScope, {pipe}>({flag})"
        weakened = tuple((s.name, *m.span(), weak) for s, m in sets)
        yield Mutant("cross", f"{name} set on {pipe}", *place, weakened)


# ---------------------------------------------------------------------------- padding


def padding(source):
    """Clears: Duplicate of zero, Select of zero, calls of ClearRows and KeepMasked, padding of a
    copy, the copies of a single row that fill a fractal. And padding that is left out: row counts
    that are not rounded up to whole blocks or fractals."""
    for call in source.calls("Duplicate"):
        values = [source.slice(span) for span in call.arguments]
        if source.is_statement(call) and values[1:2] == ["0.0f"]:
            what = f"Duplicate({values[0]})"
            yield _mutant("padding", what, source, call.start, [_gone(call)])
    for call in source.calls("ClearRows|KeepMasked"):
        if source.is_statement(call):
            what = f"{call.name}({', '.join(map(source.slice, call.arguments))})"
            yield _mutant("padding", what, source, call.start, [_gone(call)])
    for call in source.calls("Select"):
        if source.is_statement(call) and source.slice(call.arguments[3]) == "0.0f":
            yield _mutant("padding", "Select of zero", source, call.start, [_gone(call)])
    rounded = r"\(?rows \+ (?:kBlockRows - 1|15)\) / (kBlockRows|16) \* \1|rows == 1 \? \w+ : rows"
    rounded += r"|AlignUp\((?:item\.)?\w*[rR]ows, kFractalRows\)"
    for match in re.finditer(rounded, source.code):
        value = source.slice(match.span())
        exact = re.search(r"(?:item\.)?\w*[rR]ows\b", value).group()
        yield _mutant("padding", f"{value} not rounded", source, match.start(),
                      [(*match.span(), exact)])  # fmt: skip
    for match in re.finditer(r"\bisPad = (true);", source.code):
        what = "isPad"
        # Without padding its width must not be given either.
        end = source.code.index("DataCopyPad(", match.end())
        width = re.compile(r"rightPadding = ([^;]*);").search(source.code, match.end(), end)
        edits = [(*match.span(1), "false")] + ([(*width.span(1), "0")] if width else [])
        yield _mutant("padding", what, source, match.start(), edits)
    for match in re.finditer(r"\bndNum = (kFractalRows);", source.code):
        what = "copies of a single row"
        yield _mutant("padding", what, source, match.start(), [(*match.span(1), "1")])


# ---------------------------------------------------------------------------- buffer


def buffers(source):
    """InitBuffer one repeat shorter; two buffers of a queue in the memory of one; rings whose slots
    are counted modulo one less; lanes that share one slot."""
    positions = dict(
        reversed(match.groups())
        for match in re.finditer(
            r"\bT(?:Que|Buf)<(?:AscendC::)?TPosition::(\w+)[^;]*>\s*(\w+);", source.code
        )
    )
    for call in source.calls("InitBuffer"):
        if not source.is_statement(call):
            continue
        queue, *count, size = map(source.slice, call.arguments)
        step = BUFFER_STEP.get(positions.get(queue), ROW)
        edits = [(*call.arguments[-1], f"({size}) - {step}")]
        yield _mutant("buffer", f"{queue} {step} B shorter", source, call.start, edits)
        if count and count[0] != "1":
            pipe = call.receiver[:-1]
            edits = [(*call.span, f"::weaken::InitBuffer({pipe}, {queue}, {count[0]}, {size})")]
            what = f"{queue}: two buffers in one memory"
            yield _mutant("buffer", what, source, call.start, edits)
    slots = defaultdict(list)
    for match in re.finditer(r"%\s*(k\w*Depth)\b", source.code):
        slots[match.group(1)].append(match)
    for depth, matches in slots.items():
        edits = [(*match.span(1), f"({depth} - 1)") for match in matches]
        what = f"slots modulo {depth} - 1"
        yield _mutant("buffer", what, source, matches[0].start(), edits)
    for match in re.finditer(r"(?:\+ (lane)\)|\b(lane) \*|\b(number) % 2)", source.code):
        group = match.lastindex
        what = f"one slot for every {match.group(group)}"
        edits = [(*match.span(group), f"0 * {match.group(group)}")]
        yield _mutant("buffer", what, source, match.start(), edits)


# ---------------------------------------------------------------------------- offset


def offsets(source):
    """Subscripts of tensors, the bases of SetGlobalBuffer, what offset functions return, and the
    constants of layouts, each one tile further; constants one back, so that areas overlap; scalar
    reads one element further."""
    for name, position in source.subscripts():
        start, end = position + 1, source.closing(position)
        inside = source.slice((start, end))
        if not inside.strip() or source.code[end + 1 :].lstrip()[:1] == "(":
            continue  # a lambda or a declaration
        what = f"{name}[{' '.join(inside.split())}]"
        yield _mutant("offset", what, source, position, [(start, end, f"({inside}) + {ROW}")])
    for call in source.calls("GetValue"):
        argument = source.slice(call.arguments[0])
        what = f"GetValue({' '.join(argument.split())})"
        edits = [(*call.arguments[0], f"({argument}) + 1")]
        yield _mutant("offset", what, source, call.start, edits)
    for call in source.calls("SetGlobalBuffer"):
        argument = source.slice(call.arguments[0]) if len(call.arguments) == 1 else ""
        if "+" in argument:
            edits = [(*call.arguments[0], f"({argument}) + {ROW}")]
            yield _mutant("offset", "SetGlobalBuffer", source, call.start, edits)
    for match in re.finditer(r"\breturn\s+([^;]*);", source.code):
        function = source.function_at(match.start())
        value = source.slice(match.span(1))
        # One that only calls another of them is that one's mutant.
        forwards = re.fullmatch(r"[\w.]*(Offset|Space)\([^()]*\)", value)
        if re.search(r"(Offset|Space)$", function) and not forwards:
            what = f"return {' '.join(value.split())}"
            edits = [(*match.span(1), f"({value}) + {ROW}")]
            yield _mutant("offset", what, source, match.start(), edits)
    for match in re.finditer(
        r"static constexpr u?int(?:32|64)_t (k\w+) =\s*(k\w+ \+ [^;]*);", source.code
    ):
        value = source.slice(match.span(2))
        edits = [(*match.span(2), f"({value}) - {ROW}")]
        yield _mutant("offset", f"{match.group(1)} overlaps", source, match.start(), edits)


FINDERS = {
    "flag": flags,
    "barrier": barriers,
    "queue": queues,
    "cross": crosses,
    "padding": padding,
    "buffer": buffers,
    "offset": offsets,
}
WHOLE_TREE = {"cross": edges}

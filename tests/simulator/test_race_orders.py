# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The race check's clocks against the order itself: random programs of one vector core.

The oracle knows no clocks. It draws the graph of what starts and ends before what, from the rules
of docs/simulator.md, and looks for paths.
"""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.simulator.device import Device, DeviceError
from tests.simulator.test_races import line
from tests.support import build_tree

S, V, MTE2, MTE3 = range(4)
LOAD, ADD, STORE, GET, SET, BARRIER, FLAG, WAIT = range(8)
NAMES = ["load", "add", "store", "get", "set"]
PIPES = {LOAD: MTE2, ADD: V, STORE: MTE3, GET: S, SET: S}
TILES, IDS = 3, 2


@pytest.fixture(scope="module")
def checked():
    return Device(build_tree.build("sim_test_kernels_checked"))


def accesses(item):
    """(memory, first float, last float, writes) of an instruction."""
    what, a, b, _ = item
    ub, gm = ("UB", a * 8, a * 8 + 8), ("GM", b * 8, b * 8 + 8)
    if what == LOAD:
        return [(*gm, False), (*ub, True)]
    if what == ADD:
        return [("UB", b * 8, b * 8 + 8, False), (*ub, True)]
    if what == STORE:
        return [(*ub, False), (*gm, True)]
    return [("UB", a * 8 + 1, a * 8 + 2, what == SET)]


@st.composite
def programs(draw):
    """Every flag that is set is waited for, once, before it is set again."""
    items, pending = [], []
    for _ in range(draw(st.integers(2, 24))):  # with the waits at the end up to 48 items
        what = draw(st.sampled_from([LOAD, ADD, STORE, GET, SET, BARRIER, FLAG, FLAG, WAIT, WAIT]))
        a, b = draw(st.integers(0, TILES - 1)), draw(st.integers(0, TILES - 1))
        if what == BARRIER:
            items.append((what, draw(st.sampled_from([0, V, V, MTE2, MTE3])), 0, 0))
        elif what == FLAG:
            pair = draw(st.permutations(range(4)))[:2]
            flag = (*pair, draw(st.integers(0, IDS - 1)))
            if flag not in pending:
                pending.append(flag)
                items.append((FLAG, *flag))
        elif what == WAIT:
            if pending:
                items.append((WAIT, *pending.pop(draw(st.integers(0, len(pending) - 1)))))
        else:
            items.append((what, a, b, 0))
    return items + [(WAIT, *flag) for flag in pending]


def ordered_pairs(items):
    """before[i, j]: item i has ended when item j starts."""
    n = len(items)
    edges = np.zeros((2 * n, 2 * n), bool)  # 2 i: item i starts, 2 i + 1: it ends

    def pipe(i):
        what, a, b, _ = items[i]
        return {BARRIER: a, FLAG: a, WAIT: b}.get(what, PIPES.get(what))

    sets = {}
    for j, item in enumerate(items):
        edges[2 * j, 2 * j + 1] = True
        whole = item[0] == BARRIER and item[1] == 0
        for i in range(j):
            same = pipe(i) == pipe(j) and not (items[i][0] == BARRIER and items[i][1] == 0)
            # A pipe starts its items in order; waits and barriers among them hold up what follows,
            # sets do not.
            if same and not whole:
                edges[2 * i, 2 * j] = items[i][0] != FLAG
                if items[i][0] in (BARRIER, WAIT):
                    edges[2 * i + 1, 2 * j] = True
                if item[0] in (BARRIER, FLAG):
                    edges[2 * i + 1, 2 * j] = True
            # Everything is issued behind what S has waited for.
            if items[i][0] == WAIT and pipe(i) == S:
                edges[2 * i + 1, 2 * j] = True
            if whole or (items[i][0] == BARRIER and items[i][1] == 0):
                edges[2 * i + 1, 2 * j] = True
        if item[0] == FLAG:
            sets[item[1:]] = j
        elif item[0] == WAIT:
            edges[2 * sets[item[1:]] + 1, 2 * j] = True
    reach = edges
    for k in range(2 * n):
        reach = reach | (reach[:, k : k + 1] & reach[k : k + 1])
    return reach[1::2, ::2]


def races(items):
    """All races, and of those in UB the ones behind the last access of their kind on a pipe."""
    before = ordered_pairs(items)
    everything, last = set(), set()
    for j, second in enumerate(items):
        if second[0] not in PIPES:
            continue
        latest = {}
        for i, first in enumerate(items[:j]):
            if first[0] not in PIPES:
                continue
            for memory, low, high, writes in accesses(first):
                for other, begin, end, also in accesses(second):
                    if memory != other or max(low, begin) >= min(high, end):
                        continue
                    if not (writes or also) or PIPES[first[0]] == PIPES[second[0]] == S:
                        continue
                    kind = (
                        f"race: {'write' if also else 'read'} after {'write' if writes else 'read'}"
                    )
                    race = (memory, kind, NAMES[first[0]], NAMES[second[0]])
                    if not before[i, j]:
                        everything.add(race)
                    for at in range(max(low, begin), min(high, end)):
                        latest[memory, at, PIPES[first[0]], writes, also] = (race, before[i, j])
        last |= {race for race, fine in latest.values() if race[0] == "UB" and not fine}
    return everything, last


def reported(device, items):
    """The races that are listed, and whether these are all."""
    params = [len(items), 0, 0, 0, *[value for item in items for value in item]]
    out = np.zeros(256, np.float32)
    try:
        device.run("test_race_program", params, out=out, checks="races")
    except DeviceError as error:
        text = str(error)
    else:
        return set(), True
    lines = {line("test_race_program", name): name for name in NAMES}
    found = re.findall(
        r"^(race: [a-z ]+)\n.*\n  first: .*:(\d+)\n  second: .*:(\d+)\n  memory:  (..)", text, re.M
    )
    assert len(found) == text.count("race: ") > 0, text
    listed = {(memory, kind, lines[int(a)], lines[int(b)]) for kind, a, b, memory in found}
    return listed, not re.search(r"^and \d+ more$", text, re.M)


FLAGS = [(a, b, i) for a in range(4) for b in range(4) if a != b for i in range(IDS)]
# The longest program that is drawn: every flag there is, and then each one's wait.
LONGEST = [(FLAG, *flag) for flag in FLAGS] + [(WAIT, *flag) for flag in FLAGS]


@settings(max_examples=300, deadline=None)
@given(items=programs())
@example(items=LONGEST)
def test_the_clocks_say_what_the_graph_says(checked, items):
    everything, last = races(items)
    found, complete = reported(checked, items)
    assert found <= everything
    if not complete:
        return
    assert last <= found
    for memory in "UB", "GM":
        assert any(r[0] == memory for r in found) == any(r[0] == memory for r in everything)


def test_programs_have_races_and_none():
    """The oracle can tell: an ordered chain has no race, each of its orders is needed."""
    chain = [
        (LOAD, 0, 0, 0), (FLAG, MTE2, V, 0), (WAIT, MTE2, V, 0),
        (ADD, 1, 0, 0), (FLAG, V, MTE3, 0), (WAIT, V, MTE3, 0),
        (STORE, 1, 0, 0), (FLAG, MTE3, MTE2, 1), (WAIT, MTE3, MTE2, 1),
        (LOAD, 1, 0, 0),
    ]  # fmt: skip
    assert races(chain) == (set(), set())
    for at in 1, 4, 7:
        assert races(chain[:at] + chain[at + 2 :])[1 if at < 7 else 0]


# --- Several cores -------------------------------------------------------------------------------

CORES = 4  # two blocks of two AIVs
READ, WRITE, BOUNCE, ALL, SET0, SET1, AWAIT, SYNC = range(8)


@st.composite
def core_programs(draw):
    """All cores take part in all hand-overs, in one order; between them each does what it likes."""
    cores = [[] for _ in range(CORES)]

    def data():
        for items in cores:
            for _ in range(draw(st.integers(0, 2))):
                what = draw(st.sampled_from([READ, READ, WRITE, WRITE, BOUNCE, ALL]))
                items.append((what, draw(st.integers(0, 5))))

    for _ in range(draw(st.integers(1, 3))):
        data()
        kind, pipe = draw(st.sampled_from([SET0, SET1, SYNC])), draw(st.sampled_from([V, MTE2, 3]))
        for items in cores:
            items.append((kind, pipe))
        if kind != SYNC:
            data()
            for items in cores:
                items.append((AWAIT, 3 if kind == SET0 else 4))
    data()
    return cores


def cores_race(cores):
    """Whether two accesses to one tile of global memory have no order."""
    items = [(core, *item) for core, program in enumerate(cores) for item in program]
    n = len(items)
    edges = np.zeros((2 * n, 2 * n), bool)
    pipes = {READ: {MTE2}, WRITE: {MTE3}, AWAIT: {S}, BOUNCE: set()}
    joint = {}  # the items that are released together
    for j, (core, what, how) in enumerate(items):
        edges[2 * j, 2 * j + 1] = True
        for i in range(j):
            if items[i][0] != core:
                continue
            earlier = items[i][1]
            if what in (ALL, SYNC) or earlier in (ALL, SYNC, AWAIT):
                edges[2 * i + 1, 2 * j] = True
            elif what in (SET0, SET1) and how in pipes.get(earlier, ()):
                edges[2 * i + 1, 2 * j] = True  # what is behind the pipe that is named
            elif what in (READ, WRITE) and pipes.get(earlier) == pipes[what]:
                edges[2 * i, 2 * j] = True
            elif earlier == WRITE and what == BOUNCE:
                edges[2 * i + 1, 2 * j] = True  # a flag from MTE3
            elif earlier == BOUNCE and (what == READ or (what in (SET0, SET1) and how == MTE2)):
                edges[2 * i + 1, 2 * j] = True  # to MTE2
            elif earlier == READ and what == BOUNCE:
                edges[2 * i, 2 * j] = True  # MTE2 waits in its turn
        scope = core // 2 if what == SET1 or (what, how) == (AWAIT, 4) else "all"
        kind = "sync" if what == SYNC else 0 if what == SET0 or (what, how) == (AWAIT, 3) else 1
        if what in (SET0, SET1, AWAIT, SYNC):
            group = "waits" if what == AWAIT else "sets"
            own = joint.setdefault((scope, kind), {"waits": {}, "sets": {}})
            own[group].setdefault(core, []).append(j)
    for groups in joint.values():
        sets = list(groups["sets"].values())
        waits = list(groups["waits"].values()) or sets  # a SyncAll is both
        for generation in range(len(sets[0])):
            for a in sets:
                for b in waits:
                    if a[generation] != b[generation]:
                        begins = waits is sets  # its arrival, not its end, releases the others
                        edges[2 * a[generation] + (not begins), 2 * b[generation] + begins] = True
    reach = edges
    for k in range(2 * n):
        reach = reach | (reach[:, k : k + 1] & reach[k : k + 1])
    data = [i for i in range(n) if items[i][1] in (READ, WRITE)]
    return any(
        items[i][2] == items[j][2]
        and WRITE in (items[i][1], items[j][1])
        and not reach[2 * i + 1, 2 * j]
        and not reach[2 * j + 1, 2 * i]
        for i in data
        for j in data
        if i < j
    )


@pytest.mark.parametrize("threads", [1, 2])
@settings(max_examples=150, deadline=None)
@given(cores=core_programs(), seed=st.integers(0, 3))
def test_the_clocks_of_several_cores_say_what_the_graph_says(checked, cores, seed, threads):
    length = max(map(len, cores))
    params = [length]
    for program in cores:
        program = program + [(ALL, 0)] * (length - len(program))
        params += [16 * what + how for what, how in program]
    found = False
    try:
        checked.run(
            "test_race_cores", params, workspace=4096, blocks=2, threads=threads, resident=True,
            seed=seed, checks="races",
        )  # fmt: skip
    except DeviceError as error:
        assert "race: " in str(error)
        found = "memory:  GM tensor 'workspace'" in str(error)
    assert found == cores_race(cores)

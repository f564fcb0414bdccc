# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The race check's clocks against the order itself: random programs of one vector core.

The oracle knows no clocks. It draws the graph of what starts and ends before what, from the rules
of docs/simulator.md, and looks for paths.
"""

import re

import numpy as np
import pytest
from hypothesis import given, settings
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
    for _ in range(draw(st.integers(2, 24))):
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


@settings(max_examples=300, deadline=None)
@given(items=programs())
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

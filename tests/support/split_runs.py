# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A case split over ranks in one process, by the orchestration of examples/02_sequence_split."""

import importlib.util
import sys
from pathlib import Path

import mindspore as ms
import numpy as np

from tests.support import chain, reference

ROOT = Path(__file__).resolve().parents[2]
PER_TOKEN = ("dq", "dk", "dv", "dg", "dbeta")
STATES = ("final_state", "dh0")


def _load(name):
    path = ROOT / "examples" / "02_sequence_split" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sequence_split = _load("sequence_split")


def flip(tensor):
    """[.., K, V] <-> [.., V, K]"""
    return None if tensor is None else tensor.swapaxes(-1, -2).contiguous()


def ranks(x, layout, cuts, keep="caches", state_v_first=False, **options):
    """The Rank objects of a case. dbeta comes in float32: beta is given in it."""
    named = chain.tensors(x, layout, beta_dtype=ms.float32)
    states = named.pop("initial_state")
    tokens = x.q.shape[2]
    bounds = [0, tokens] if x.cu_seqlens is None else list(x.cu_seqlens)
    return [
        sequence_split.Rank(
            rank,
            part,
            {
                name: t if name in ("a_log", "dt_bias") else sequence_split.take(t, layout, part)
                for name, t in named.items()
            },
            x.scale,
            layout=layout,
            initial_states=flip(states) if state_v_first else states,
            packed=x.cu_seqlens is not None,
            keep=keep,
            state_v_first=state_v_first,
            **{**chain.gate_options(), **x.options, **options},
        )
        for rank, part in enumerate(sequence_split.split(bounds, cuts))
    ]


def results(x, layout, cuts, state_v_first=False, **how):
    """What chain.results returns, from ranks cut at ``cuts``."""
    token_major = chain.output_layout(layout)
    d_o = np.zeros_like(x.v) if x.d_o is None else x.d_o
    d_o = chain.tensor(reference.from_head_major(d_o, token_major), getattr(ms, x.io.name))
    dht = chain.tensor(x.dht)
    members = ranks(x, layout, cuts, state_v_first=state_v_first, **how)
    got = sequence_split.run(members, d_o, flip(dht) if state_v_first else dht)
    out = {}
    for name, value in got.items():
        if name in STATES and state_v_first:
            value = flip(value)
        value = chain.array(value)
        if name == "output":
            value = reference.to_head_major(value, token_major)
        elif name in PER_TOKEN:
            value = reference.to_head_major(value, layout)
        out[name] = value
    return out

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Fresh random inputs over the supported set, and searches for seeds that make errors large.

Every array holds values that its dtype can hold (io tensors are rounded, then kept as float32),
so a test feeds the device exactly what the float64 reference sees. Each tensor has a random stream
of its own: a search can draw one tensor of a thousand seeds without making the others.
"""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from tests.support import reference
from tests.support.io_types import BFLOAT16, IoType

# dt_bias ranges of the safe gate a = lower_bound * sigmoid(exp(a_log) * (g + dt_bias)).
DECAYS = {
    "lasting": (-8.0, -6.0),  # a state lives for hundreds of tokens
    "weak": (-5.0, -3.0),
    "medium": (-3.0, 0.0),
    "strong": (2.0, 6.0),  # close to lower_bound on every channel
    "mixed": (-8.0, 6.0),  # channels of one head from one end to the other
    "bound": (6.0, 6.0),  # as close to lower_bound as the test's contract goes
}
# dt_bias ranges of the gate a = -exp(a_log) * softplus(g + dt_bias), which has no bound.
SOFTPLUS_DECAYS = {
    "tiny": (-28.0, -26.0),  # about 1e-12 nats a token
    "lasting": (-9.0, -7.0),
    "weak": (-6.0, -4.0),
    "medium": (-3.0, 1.0),
    "strong": (4.0, 8.0),
    "mixed": (-10.0, 50.0),
    "extreme": (50.0, 50.0),  # about -50 nats a token on every channel
}
# Ranges of -a of a gate that comes activated: a channel draws its place in between (evenly in the
# logarithm), its tokens scatter around it by a factor of e^+-0.5.
ACTIVATED_DECAYS = {
    "zero": (0.0, 0.0),  # no decay at all
    "tiny": (1e-12, 1e-12),
    "lasting": (1e-4, 1e-3),
    "weak": (3e-3, 3e-2),
    "medium": (3e-2, 1.0),
    "strong": (3.0, 8.0),
    "mixed": (1e-4, 50.0),
    "extreme": (50.0, 50.0),
    "steps": None,  # -50 for one token and channel in eight, exactly 0 for the others
}
MOST_NATS = 50.0
# Every gate has the decays that the first one and the last one share: for tests that run over all.
GATES = {"safe": DECAYS, "softplus": SOFTPLUS_DECAYS, "activated": ACTIVATED_DECAYS}
COMMON_DECAYS = ("lasting", "weak", "medium", "strong", "mixed")
GATE_OPTIONS = {
    "safe": {"use_gate_in_kernel": True, "safe_gate": True},
    "softplus": {"use_gate_in_kernel": True, "safe_gate": False},
    "activated": {"use_gate_in_kernel": False, "safe_gate": False},
}
KEYS = ("independent", "parallel")
BETAS = ("sigmoid", "unit", "two", "neg_eigval")
LOSSES = ("output", "final_state", "both")
_STREAMS = {
    name: i
    for i, name in enumerate(
        ("q", "k", "v", "g", "beta", "a_log", "dt_bias", "initial_state", "d_o", "dht")
    )
}


FRESH = []  # every seed that fresh_seed gave


def fresh_seed():
    """Another one in every run, for what holds whatever the numbers are. `pytest --draws N` tells
    how far what is held to a limit stays away from it."""
    FRESH.append(int(np.random.SeedSequence().entropy % 2**31))
    return FRESH[-1]


def stream(seed, name):
    """The random generator of one tensor of one seed."""
    return np.random.default_rng([int(seed), _STREAMS[name]])


@dataclass
class Inputs:
    """Inputs of a chain in head-major layout, its upstream gradients and its options."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    g: np.ndarray
    beta: np.ndarray
    a_log: np.ndarray
    dt_bias: np.ndarray
    initial_state: np.ndarray
    d_o: np.ndarray
    dht: np.ndarray
    scale: float
    options: dict = field(default_factory=dict)
    cu_seqlens: tuple = None
    case: str = ""
    io: IoType = BFLOAT16

    def forward(self):
        """float64: output, final_state, cache."""
        return reference.forward(
            self.q,
            self.k,
            self.v,
            self.g,
            self.beta,
            self.scale,
            initial_state=self.initial_state,
            cu_seqlens=self.cu_seqlens,
            a_log=self.a_log,
            dt_bias=self.dt_bias,
            **self.options,
        )

    def backward(self, cache):
        """float64: the gradients by name."""
        return reference.backward(
            cache,
            self.v,
            self.g,
            self.d_o,
            self.dht,
            self.scale,
            initial_state=self.initial_state,
            cu_seqlens=self.cu_seqlens,
            a_log=self.a_log,
            dt_bias=self.dt_bias,
            **self.options,
        )

    def results(self):
        """float64: output, final_state and every gradient by name, in one mapping."""
        output, final_state, cache = self.forward()
        return dict(output=output, final_state=final_state, **self.backward(cache))

    def upstream_norm(self):
        """Norm of the upstream gradients together: the scale that dh0 is judged on."""
        parts = [
            np.sum(np.square(x, dtype=np.float64)) for x in (self.d_o, self.dht) if x is not None
        ]
        return float(np.sqrt(np.sum(parts)))


def packed(lengths):
    """cu_seqlens of sequences of those lengths."""
    return [0, *itertools.accumulate(lengths)]


def shown(cu_seqlens):
    """cu_seqlens in a case's name: the lengths, as far as there is room."""
    lengths = [b - a for a, b in itertools.pairwise(cu_seqlens)]
    more = f"... {len(lengths)} sequences" if len(lengths) > 12 else ""
    return "lengths " + ",".join(map(str, lengths[:12])) + more


def sequences(x):
    """Every sequence of a packed case as a dense case of its own."""
    if x.cu_seqlens is None:
        raise ValueError(f"{x.case}: not packed")
    out = []
    for n, (start, stop) in enumerate(itertools.pairwise(x.cu_seqlens)):
        rows = {
            name: None if getattr(x, name) is None else getattr(x, name)[:, :, start:stop]
            for name in ("q", "k", "v", "g", "beta", "d_o")
        }
        states = {
            name: None if getattr(x, name) is None else getattr(x, name)[n : n + 1]
            for name in ("initial_state", "dht")
        }
        case = f"{x.case}, sequence {n} alone"
        out.append(replace(x, **rows, **states, cu_seqlens=None, case=case))
    return out


def draw_v(seed, shape, io=BFLOAT16):
    return io.round(stream(seed, "v").standard_normal(shape))


def draw_k(seed, shape, keys="independent", unit_norm=False):
    return _draw_keys(seed, "k", shape, keys, unit_norm, BFLOAT16)


def _draw_keys(seed, name, shape, keys, unit_norm, io):
    if keys not in KEYS:
        raise ValueError(f"keys: expected one of {KEYS}, got {keys!r}")
    rng = stream(seed, name)
    x = rng.standard_normal(shape) if keys == "independent" else rng.random(shape)
    if unit_norm:
        x = x / np.sqrt(np.sum(x * x, -1, keepdims=True) + 1e-6)
    return io.round(x)


def _draw_beta(seed, shape, beta, io):
    rng = stream(seed, "beta")
    if beta in ("sigmoid", "neg_eigval"):  # raw, the kernel applies the sigmoid
        return io.round(rng.standard_normal(shape))
    if beta == "unit":
        return rng.random(shape).astype(np.float32)
    if beta == "two":
        return (2 * rng.random(shape)).astype(np.float32)
    raise ValueError(f"beta: expected one of {BETAS}, got {beta!r}")


def _draw_gate(seed, shape, gate, decay, io):
    """g, a_log, dt_bias. What io cannot hold is rounded, so g may be passed in either dtype."""
    if gate not in GATES:
        raise ValueError(f"gate: expected one of {tuple(GATES)}, got {gate!r}")
    if decay not in GATES[gate]:
        raise ValueError(f"decay: expected one of {tuple(GATES[gate])}, got {decay!r}")
    heads, channels = shape[1], shape[3]
    place = stream(seed, "dt_bias").random((heads, channels))
    tokens = stream(seed, "g")
    if gate != "activated":
        low, high = GATES[gate][decay]
        a_log = (0.3 * stream(seed, "a_log").standard_normal(heads)).astype(np.float32)
        if gate == "softplus":  # 50 nats at a rate of 1 stay above the kernels' floor of -105
            a_log = np.minimum(a_log, np.float32(0.6))
        if decay == "extreme":
            # With rates of their own, gradients of the gate would be e^-15 and more apart from head
            # to head, and one head alone would stand for all of them in a norm.
            a_log[:] = 0
        dt_bias = (low + (high - low) * place).astype(np.float32)
        return io.round(tokens.standard_normal(shape)), a_log, dt_bias
    if decay == "steps":
        return (
            np.where(tokens.random(shape) < 1 / 8, -MOST_NATS, 0.0).astype(np.float32),
            None,
            None,
        )
    low, high = ACTIVATED_DECAYS[decay]
    nats = low * (high / low) ** place[:, None, :] if low > 0 else np.zeros((heads, 1, channels))
    if decay != "extreme":
        nats = nats * np.exp(tokens.random(shape) - 0.5)
    nats = np.broadcast_to(np.minimum(nats, MOST_NATS), shape)
    return io.round(-nats), None, None


def make_inputs(
    seed,
    batch=1,
    tokens=65,
    heads=2,
    *,
    key_heads=None,
    k_dim=128,
    v_dim=128,
    gate="safe",
    decay="medium",
    keys="independent",
    beta="sigmoid",
    l2norm=True,
    use_exp2=True,
    initial_state=False,
    loss="both",
    constant_dht=False,
    cu_seqlens=None,
    io=BFLOAT16,
):
    """One case of the supported set. Without l2norm in the kernel, q and k come in normalised (the
    recurrence diverges for long keys). `decay` is one of GATES[gate]; the options of the result
    name the gate unless it is the safe one, which the reference takes by default."""
    key_heads = heads if key_heads is None else key_heads
    qk_shape = (batch, key_heads, tokens, k_dim)
    v_shape, g_shape = (batch, heads, tokens, v_dim), (batch, heads, tokens, k_dim)
    sequences = reference.sequence_count(batch, cu_seqlens)
    state_shape = (sequences, heads, k_dim, v_dim)
    if loss not in LOSSES:
        raise ValueError(f"loss: expected one of {LOSSES}, got {loss!r}")
    g, a_log, dt_bias = _draw_gate(seed, g_shape, gate, decay, io)
    state = stream(seed, "initial_state").standard_normal(state_shape) if initial_state else None
    d_o = io.round(stream(seed, "d_o").standard_normal(v_shape)) if loss != "final_state" else None
    dht = None
    if loss != "output":
        dht = stream(seed, "dht").standard_normal(state_shape)
        dht = (np.ones_like(dht) if constant_dht else dht).astype(np.float32)
    options = {
        "use_qk_l2norm_in_kernel": l2norm,
        "use_beta_sigmoid_in_kernel": beta in ("sigmoid", "neg_eigval"),
    }
    if beta == "neg_eigval":
        options["allow_neg_eigval"] = True
    if gate != "safe":
        options.update(GATE_OPTIONS[gate])
    if not use_exp2:
        options["use_exp2"] = False
    case = (
        f"seed={seed} B={batch} T={tokens} H={heads} gate={gate} decay={decay} keys={keys} "
        f"beta={beta} l2norm={l2norm} use_exp2={use_exp2} h0={initial_state} loss={loss}"
        + (f" io={io}" if io != BFLOAT16 else "")
        + (f" Hk={key_heads}" if key_heads != heads else "")
        + (f" cu_seqlens={shown(cu_seqlens)}" if cu_seqlens is not None else "")
    )
    return Inputs(
        q=_draw_keys(seed, "q", qk_shape, keys, not l2norm, io),
        k=_draw_keys(seed, "k", qk_shape, keys, not l2norm, io),
        v=draw_v(seed, v_shape, io),
        g=g,
        beta=_draw_beta(seed, v_shape[:3], beta, io),
        a_log=a_log,
        dt_bias=dt_bias,
        initial_state=None if state is None else state.astype(np.float32),
        d_o=d_o,
        dht=dht,
        scale=k_dim**-0.5,
        options=options,
        cu_seqlens=cu_seqlens,
        case=case,
        io=io,
    )


def without(inputs, *names):
    """A copy with the named tensors set to None."""
    return replace(inputs, **dict.fromkeys(names))


# ------------------------------------------------------------------------------ worst-case search
# Under strong decay and a loss on the final state alone, gradients of the last rows are sums over
# one row of v or k: where that sum nearly cancels, every rounding before it is magnified.
def _last_v(seed, tokens, v_dim=128):
    return np.abs(draw_v(seed, (1, 1, tokens, v_dim))[0, 0, -1].sum(dtype=np.float64))


def _last_k(seed, tokens, k_dim=128):
    k = draw_k(seed, (1, 1, tokens, k_dim))[0, 0, -1].astype(np.float64)
    return np.abs(k.sum()) / np.sqrt(np.sum(k * k))


def _second_last_v(seed, tokens, v_dim=128):
    return np.abs(draw_v(seed, (1, 1, tokens, v_dim))[0, 0, -2].sum(dtype=np.float64))


SEARCHES = {
    "|sum_v v_last|": _last_v,
    "|sum_k k_last|": _last_k,
    "|sum_v v_(last-1)|": _second_last_v,
}


def worst_seeds(search, tokens=65, count=1500, keep=6, first=0):
    """The `keep` seeds of `count` with the smallest statistic, smallest first."""
    statistic = SEARCHES[search]
    values = np.array([statistic(seed, tokens) for seed in range(first, first + count)])
    return [int(first + i) for i in np.argsort(values)[:keep]]


def final_state_only(seed, tokens=65, decay="strong", **overrides):
    """The known hard case: one head, strong decay, constant dht, loss on the final state alone."""
    settings = {"heads": 1, "decay": decay, "loss": "final_state", "constant_dht": True}
    return make_inputs(seed, tokens=tokens, **{**settings, **overrides})


HARD_FALLS = (-200.0, -1e4, -3e38, -np.inf)


def hard_falls(seed, gate, fall, tokens=200, heads=2, weak=0.1, loss="both"):
    """Decays up to `weak` nats, and here and there a token that decays by `fall`. float64 sums
    nothing below -700 beside the rest, where nothing is left anyway: a truth is the case with that
    fall."""
    x = make_inputs(
        seed, tokens=tokens, heads=heads, gate=gate, decay="mixed", beta="unit", loss=loss
    )
    rng = np.random.default_rng(seed)
    falls = rng.random(x.g.shape) < 0.02
    falls[:, :, [3, 70]] = True  # in every channel
    decay = np.where(falls, fall, -weak * rng.uniform(0.1, 1, x.g.shape))
    if gate == "softplus":
        x.a_log, x.dt_bias = np.zeros_like(x.a_log), np.zeros_like(x.dt_bias)
        decay = np.where(decay < -50, -decay, np.log(np.expm1(np.minimum(-decay, 50))))
    x.g = decay.astype(np.float32)
    return x

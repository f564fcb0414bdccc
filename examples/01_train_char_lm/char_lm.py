# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""A small causal language model whose only memory is npu_chunk_kda.

The feed-forward part sees one position at a time; whatever a prediction knows of earlier characters
has gone through a KDA layer.
"""

from __future__ import annotations

import enum
import functools
import math
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

import hyper_parallel_kda

# The op's head width, K = V.
HEAD_WIDTH = 128


class Memory(enum.Enum):
    """What the KDA layers' state does; anything but FULL is for evaluation."""

    FULL = "full"
    # beta = 0: no token adds anything to the state.
    CUT = "cut"
    # The strongest decay the gate can express: e^lower_bound a token in every channel. What is left
    # is the token itself, and through the short convolutions the three before it.
    FADED = "faded"


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    width: int = 128
    heads: int = 1
    layers: int = 2
    mlp_width: int = 256
    taps: int = 4
    lower_bound: float = -5.0


@dataclass(frozen=True)
class LayerState:
    """What a layer must keep to go on with a sequence."""

    # Last inputs of the short convolutions [batch, taps - 1, width], and KDA's state [batch, heads,
    # K, V]. None: the sequence begins.
    past: Tensor | None
    kda: Tensor | None


class Linear(nn.Cell):
    """Rows times a weight [outputs, inputs]; no bias."""

    def __init__(self, rng, inputs: int, outputs: int, gain: float = 1.0):
        super().__init__()
        self.weight = Parameter(_normal(rng, (outputs, inputs), gain / math.sqrt(inputs)))
        self.matmul = ops.MatMul(transpose_b=True)

    def construct(self, rows):
        return self.matmul(rows, self.weight)


class RmsNorm(nn.Cell):
    """Rows divided by their root mean square. The gain is part of the projection that follows.

    The mean and the way back to full rows are products with constant matrices: MindSpore's
    reductions and broadcasts on CPU take several times as long.
    """

    def __init__(self, width: int, epsilon: float = 1e-6):
        super().__init__()
        self.average = Tensor(np.full((width, 1), 1.0 / width, np.float32))
        self.ones = Tensor(np.ones((1, width), np.float32))
        self.epsilon = epsilon
        self.matmul = ops.MatMul()

    def construct(self, rows):
        scale = ops.rsqrt(self.matmul(rows * rows, self.average) + self.epsilon)
        return rows * self.matmul(scale, self.ones)


class RecentTokens(nn.Cell):
    """Each row beside the rows of the tokens before it: the input of a short convolution."""

    def __init__(self, width: int, taps: int):
        super().__init__()
        self.width = width
        self.taps = taps
        self.nothing = Tensor(np.zeros((1, width), np.float32))

    def construct(self, rows, batch, past):
        """rows [batch * tokens, width]; past [batch, taps - 1, width], or None at the start.

        Returns [batch * tokens, taps * width], newest first, and the past of the next tokens.
        """
        tokens = rows.shape[0] // batch
        x = rows.reshape(batch, tokens, self.width)
        if past is None and tokens < self.taps:
            past = ops.zeros((batch, self.taps - 1, self.width), rows.dtype)
        index = _recent_rows(batch, tokens, self.taps, past is None)
        if past is None:
            # The usual training step: one row of zeros stands for all that was before.
            rows = ops.cat((self.nothing, rows), axis=0)
        else:
            x = ops.cat((past, x), axis=1)
            rows = x.reshape(-1, self.width)
        recent = ops.gather(rows, index, 0).reshape(-1, self.taps * self.width)
        return recent, x[:, 1 - self.taps :]


@functools.lru_cache(maxsize=64)
def _recent_rows(batch: int, tokens: int, taps: int, at_start: bool) -> Tensor:
    """Where RecentTokens finds token t - n of each sequence, for n = 0 .. taps - 1."""
    token = np.arange(tokens)[:, None] - np.arange(taps)
    sequence = np.arange(batch)[:, None, None]
    if at_start:
        # Row 0 is zeros: what was before the first token.
        index = np.where(token < 0, 0, 1 + sequence * tokens + token)
    else:
        index = sequence * (tokens + taps - 1) + taps - 1 + token
    return Tensor(index.reshape(-1).astype(np.int32))


class ShortConvolution(nn.Cell):
    """Projection, causal depthwise convolution over the last few tokens, SiLU.

    Projection and convolution are both linear, so they are one product: tap n scales the columns
    of the projection for the token n steps back.
    """

    def __init__(self, rng, inputs: int, channels: int, taps: int):
        super().__init__()
        self.projection = Parameter(_normal(rng, (inputs, channels), 1.0 / math.sqrt(inputs)))
        taps_weight = rng.normal(0.0, 0.25, (taps, channels))
        taps_weight[0] += 0.5
        self.taps_weight = Parameter(Tensor(taps_weight.astype(np.float32)))
        self.taps = taps
        self.spread = Tensor(np.repeat(np.eye(taps, dtype=np.float32), inputs, axis=0))
        self.matmul = ops.MatMul()

    def construct(self, recent):
        projections = ops.cat((self.projection,) * self.taps, axis=0)
        weight = projections * self.matmul(self.spread, self.taps_weight)
        return ops.silu(self.matmul(recent, weight))


class KdaLayer(nn.Cell):
    """x + output projection(gate * RMSNorm(KDA(...)))."""

    def __init__(self, rng, config: ModelConfig):
        super().__init__()
        inner = config.heads * HEAD_WIDTH
        self.heads = config.heads
        self.lower_bound = config.lower_bound
        self.norm = RmsNorm(config.width)
        self.recent = RecentTokens(config.width, config.taps)
        self.to_qkv = ShortConvolution(rng, config.width, 3 * inner, config.taps)
        self.to_decay = Linear(rng, config.width, inner, gain=0.3)
        self.to_beta = Linear(rng, config.width, config.heads)
        self.to_gate = Linear(rng, config.width, inner)
        self.a_log = Parameter(Tensor(np.zeros(config.heads, np.float32)))
        self.dt_bias = Parameter(Tensor(_decay_bias(config)))
        self.norm_out = RmsNorm(HEAD_WIDTH)
        self.to_out = Linear(rng, inner, config.width, gain=0.5)

    def construct(self, x, batch, state, memory):
        rows = self.norm(x)
        shape = (batch, -1, self.heads, HEAD_WIDTH)
        recent, past = self.recent(rows, batch, state.past)
        qkv = self.to_qkv(recent).astype(ms.bfloat16)
        q, k, v = (part.reshape(shape) for part in ops.split(qkv, qkv.shape[-1] // 3, axis=-1))
        decay = self.to_decay(rows).reshape(shape)
        if memory is Memory.FADED:
            decay = ops.full_like(decay, 1e3)
        beta = self.to_beta(rows).reshape(batch, -1, self.heads)
        o, final_state = hyper_parallel_kda.npu_chunk_kda(
            q,
            k,
            v,
            decay,
            ops.zeros_like(beta) if memory is Memory.CUT else beta,
            HEAD_WIDTH**-0.5,
            layout="BSND",
            output_final_state=True,
            safe_gate=True,
            lower_bound=self.lower_bound,
            use_gate_in_kernel=True,
            a_log=self.a_log,
            dt_bias=self.dt_bias,
            initial_state=state.kda,
            use_qk_l2norm_in_kernel=True,
            use_beta_sigmoid_in_kernel=memory is not Memory.CUT,
        )
        o = self.norm_out(o.astype(ms.float32).reshape(-1, HEAD_WIDTH))
        o = o.reshape(-1, self.heads * HEAD_WIDTH) * ops.sigmoid(self.to_gate(rows))
        return x + self.to_out(o), LayerState(past, final_state)


class FeedForward(nn.Cell):
    """x + down(relu(up(RMSNorm(x)))^2), one position at a time."""

    def __init__(self, rng, config: ModelConfig):
        super().__init__()
        self.norm = RmsNorm(config.width)
        self.up = Linear(rng, config.width, config.mlp_width)
        self.down = Linear(rng, config.mlp_width, config.width, gain=0.5)

    def construct(self, x):
        return x + self.down(ops.square(ops.relu(self.up(self.norm(x)))))


class CharLm(nn.Cell):
    """Logits of the next symbol at each position, and the state after the last one."""

    def __init__(self, config: ModelConfig, seed: int = 0):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.config = config
        self.embedding = Parameter(_normal(rng, (config.vocab_size, config.width), 0.5))
        self.kda = nn.CellList([KdaLayer(rng, config) for _ in range(config.layers)])
        self.mlp = nn.CellList([FeedForward(rng, config) for _ in range(config.layers)])
        self.norm = RmsNorm(config.width)
        self.to_logits = Linear(rng, config.width, config.vocab_size, gain=0.2)

    def start(self) -> tuple[LayerState, ...]:
        """The state before the first token: nothing seen, nothing stored."""
        return (LayerState(None, None),) * self.config.layers

    def construct(self, ids, state, memory=Memory.FULL):
        """ids [batch, tokens] int32 -> logits [batch * tokens, vocabulary], state."""
        batch = ids.shape[0]
        x = ops.gather(self.embedding, ids.reshape(-1), 0)
        after = []
        for kda, mlp, layer_state in zip(self.kda, self.mlp, state, strict=True):
            x, layer_state = kda(x, batch, layer_state, memory)
            x = mlp(x)
            after.append(layer_state)
        return self.to_logits(self.norm(x)), tuple(after)


def _normal(rng, shape, deviation: float) -> Tensor:
    return Tensor(rng.normal(0.0, deviation, shape).astype(np.float32))


def _decay_bias(config: ModelConfig) -> np.ndarray:
    """Channels that remember from two characters to a thousand, before training."""
    decay = np.exp(np.linspace(math.log(1e-3), math.log(0.5), HEAD_WIDTH))
    share = decay / -config.lower_bound
    return np.tile(np.log(share / (1.0 - share)), (config.heads, 1)).astype(np.float32)

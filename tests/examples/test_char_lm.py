# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The example's model and training step, over the real op."""

import mindspore as ms
import numpy as np
import pytest
import train
from char_lm import CharLm, Memory, ModelConfig
from corpus import VOCAB_SIZE
from mindspore import Tensor

from tests.support.metrics import relative_l2

CONFIG = ModelConfig(vocab_size=VOCAB_SIZE, width=32, mlp_width=32)
# Twice what two ways of cutting a sequence into chunks were measured to differ by, at bf16.
ROUNDING = 0.01


@pytest.fixture(scope="module")
def model():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    return CharLm(CONFIG, seed=3)


@pytest.fixture(scope="module")
def text():
    return np.random.default_rng(0).integers(0, VOCAB_SIZE, (2, 70)).astype(np.int32)


def logits_of(model, ids, state=None, memory=Memory.FULL):
    """[batch, tokens, vocabulary] and the state after."""
    state = model.start() if state is None else state
    logits, state = model(Tensor(np.ascontiguousarray(ids)), state, memory)
    return logits.asnumpy().reshape(*ids.shape, -1), state


def test_shapes(model, text):
    logits, state = logits_of(model, text)
    assert logits.shape == (2, 70, VOCAB_SIZE)
    assert np.isfinite(logits).all()
    assert len(state) == CONFIG.layers
    for layer in state:
        assert layer.kda.shape == (2, 1, 128, 128)
        assert layer.past.shape == (2, CONFIG.taps - 1, CONFIG.width)


@pytest.mark.parametrize("changed", [8, 15, 40, 64, 69])
def test_a_later_character_changes_nothing_earlier(model, text, changed):
    other = text.copy()
    other[0, changed] = (other[0, changed] + 1) % VOCAB_SIZE
    before, _ = logits_of(model, text)
    after, _ = logits_of(model, other)
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(before[0, :changed], after[0, :changed])
    assert relative_l2(after[0, changed:], before[0, changed:]) > 10 * ROUNDING


def test_an_early_character_reaches_the_last_prediction_through_the_state(model, text):
    other = text.copy()
    other[0, 3] = (other[0, 3] + 1) % VOCAB_SIZE
    assert np.any(logits_of(model, text)[0][0, -1] != logits_of(model, other)[0][0, -1])


@pytest.mark.parametrize("lengths", [(64, 6), (35, 35), (1, 2, 67), (68, 1, 1)])
def test_the_state_carries_a_text_cut_anywhere(model, text, lengths):
    whole, final = logits_of(model, text)
    state, parts, start = None, [], 0
    for length in lengths:
        part, state = logits_of(model, text[:, start : start + length], state)
        parts.append(part)
        start += length
    assert relative_l2(np.concatenate(parts, axis=1), whole) < ROUNDING
    for got, wanted in zip(state, final, strict=True):
        assert relative_l2(got.kda.asnumpy(), wanted.kda.asnumpy()) < ROUNDING
        assert relative_l2(got.past.asnumpy(), wanted.past.asnumpy()) < ROUNDING


def test_a_forgotten_state_would_show(model, text):
    whole, _ = logits_of(model, text)
    second, _ = logits_of(model, text[:, 35:])
    assert relative_l2(second, whole[:, 35:]) > 5 * ROUNDING


def test_with_the_state_cut_only_the_last_character_counts(model, text):
    other = text.copy()
    other[:, :-1] = (other[:, :-1] + 1) % VOCAB_SIZE
    cut, state = logits_of(model, text, memory=Memory.CUT)
    np.testing.assert_array_equal(cut[:, -1], logits_of(model, other, memory=Memory.CUT)[0][:, -1])
    assert all(not layer.kda.asnumpy().any() for layer in state)


def test_with_the_state_fading_old_characters_hardly_count(model, text):
    other = text.copy()
    other[:, :40] = (other[:, :40] + 1) % VOCAB_SIZE
    for memory, expected in ((Memory.FADED, False), (Memory.FULL, True)):
        first, second = (logits_of(model, x, memory=memory)[0][:, -1] for x in (text, other))
        assert (relative_l2(first, second) > 1e-3) is expected


def test_training_steps_lower_the_loss():
    trainer = train.Trainer(CharLm(CONFIG, seed=0), weight_decay=0.01, clip=1.0)
    rng = np.random.default_rng(0)
    text = np.tile(rng.integers(0, VOCAB_SIZE, 23), 40).astype(np.uint8)
    sampler = train.WindowSampler(text, batch=2, tokens=80, seed=0)
    losses = [trainer.step(*sampler.next(), 5e-3) for _ in range(12)]
    assert losses[0] == pytest.approx(np.log(VOCAB_SIZE), abs=0.5)
    assert losses[-1] < losses[0] - 0.5


def test_windows_are_the_text_and_itself_one_later():
    text = np.arange(90, dtype=np.uint8)
    ids, targets = train.WindowSampler(text, batch=3, tokens=7, seed=1).next()
    np.testing.assert_array_equal(ids.asnumpy().reshape(-1) + 1, targets.asnumpy())
    with pytest.raises(ValueError, match="text: expected more than the 7"):
        train.WindowSampler(text[:7], batch=1, tokens=7, seed=0)


def test_the_schedule_warms_up_and_ends_at_zero():
    rates = [train.learning_rate_at(step / 100, step, 1.0, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert int(np.argmax(rates)) == 9
    assert rates[-1] == pytest.approx(0.01)
    assert train.learning_rate_at(1.5, 100, 1.0, 10) == 0.0


def test_a_missed_criterion_is_a_failure():
    good = {"held_out_loss": 1.7, "cut_loss": 2.7, "ngram_losses": [3.1, 2.4, 1.9, 1.6]}
    assert train.failures(good) == []
    assert len(train.failures({**good, "held_out_loss": 1.95})) == 1
    assert len(train.failures({**good, "cut_loss": 1.85})) == 1
    assert len(train.failures({**good, "held_out_loss": float("nan")})) == 2

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The example's corpus, its split, and the n-gram models that it has to beat."""

import math

import corpus
import ngram
import numpy as np
import pytest


def write_library(folder, count):
    for number in range(count):
        text = f'"""Module {number}."""\n\nVALUE = {number}\n'
        (folder / f"module_{number}.py").write_text(text)
    return folder


def test_the_split_is_by_file_and_disjoint():
    found = corpus.load_corpus()
    assert found.train_files and found.held_out_files
    assert not set(found.train_files) & set(found.held_out_files)
    assert len(found.train) > 3 * len(found.held_out) > 0
    assert max(found.train.max(), found.held_out.max()) < corpus.VOCAB_SIZE


def test_the_corpus_is_the_same_each_time():
    first, second = corpus.load_corpus(), corpus.load_corpus()
    assert first.train_files == second.train_files
    assert first.held_out_files == second.held_out_files
    np.testing.assert_array_equal(first.train, second.train)
    np.testing.assert_array_equal(first.held_out, second.held_out)


def test_a_new_file_moves_no_other_one(tmp_path):
    before = corpus.load_corpus(write_library(tmp_path, 60))
    (tmp_path / "another.py").write_text("pass\n")
    after = corpus.load_corpus(tmp_path)
    assert set(after.train_files) - {"another.py"} == set(before.train_files)
    assert set(after.held_out_files) - {"another.py"} == set(before.held_out_files)


def test_a_file_that_does_not_parse_as_text_is_left_out(tmp_path):
    write_library(tmp_path, 60)
    (tmp_path / "broken.py").write_bytes(b"# coding: no-such-codec\n")
    (tmp_path / "_sysconfigdata__linux.py").write_text("build_time_vars = {}\n")
    found = corpus.load_corpus(tmp_path)
    assert len(found.train_files) + len(found.held_out_files) == 60


def test_an_empty_folder_is_reported(tmp_path):
    with pytest.raises(RuntimeError, match=str(tmp_path)):
        corpus.load_corpus(tmp_path)


def test_encoding_keeps_ascii_and_marks_the_rest():
    text = "def f(x):\n\treturn 'é€\U0001f600~'\r\n"
    wanted = "def f(x):\n    return '" + corpus.OTHER * 3 + "~'\n"
    assert corpus.decode(corpus.encode(text)) == wanted
    assert corpus.decode(range(corpus.VOCAB_SIZE)) == corpus.ALPHABET


def ids(text):
    return np.array([ord(c) - ord("a") for c in text], dtype=np.uint8)


def test_orders_0_to_2_by_hand():
    text = ids("abaabab")
    model = ngram.NgramModel(text, max_order=2, vocab_size=3)
    model.discounts = [0.3, 0.6, 0.9]
    # Counted at positions 2..6, as all orders are: a a b a b.
    uniform = 1 / 3
    order_0 = (2 - 0.3) / 5 + 0.3 * 2 / 5 * uniform
    # After a: a once, b twice.
    order_1 = (2 - 0.6) / 3 + 0.6 * 2 / 3 * order_0
    # After "ba": a once, b once.
    order_2 = (1 - 0.9) / 2 + 0.9 * 2 / 2 * order_1
    found = model.probabilities(ids("bab"), np.array([2]))
    np.testing.assert_allclose(found[:, 0], [order_0, order_1, order_2], rtol=1e-12)
    assert model.losses(ids("bab"), np.array([2])) == pytest.approx(
        [-math.log(p) for p in (order_0, order_1, order_2)]
    )


def test_every_order_is_a_distribution():
    rng = np.random.default_rng(0)
    model = ngram.NgramModel(rng.integers(0, 5, 300), max_order=3, vocab_size=5)
    # The last contexts hold symbols and pairs that the counts may never have seen.
    for context in rng.integers(0, 5, (20, 3)):
        total = sum(
            model.probabilities(np.append(context, symbol), np.array([3]))[:, 0]
            for symbol in range(5)
        )
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def test_an_unseen_context_falls_back_to_the_order_below():
    model = ngram.NgramModel(ids("abababab"), max_order=2, vocab_size=4)
    order_0, order_1, order_2 = model.probabilities(ids("dda"), np.array([2]))[:, 0]
    assert order_2 == order_1 == order_0


def test_only_the_order_of_the_source_is_learned():
    # A source of order 1: order 1 reaches its entropy, order 0 does not, order 2 gains nothing.
    rng = np.random.default_rng(1)
    steps = rng.random(20000) < 0.9
    text = np.cumsum(np.where(steps, 1, 2)) % 4
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    model = ngram.fit_ngrams(text[:15000], 0.1, 2, 4)
    losses = model.losses(text, np.arange(15000, 20000))
    assert losses[0] == pytest.approx(math.log(4), abs=0.01)
    assert losses[1] == pytest.approx(entropy, abs=0.02)
    assert losses[2] == pytest.approx(losses[1], abs=0.01)


def test_tuning_never_raises_the_loss_on_the_tuning_text():
    rng = np.random.default_rng(2)
    text = np.minimum(rng.geometric(0.3, 3000), 20) - 1
    model = ngram.NgramModel(text[:2000], max_order=2, vocab_size=20)
    positions = np.arange(2002, 3000)
    model.discounts = [0.1] * 3
    before = model.losses(text, positions)
    model.tune(text[2000:])
    after = model.losses(text, positions)
    assert all(late <= early for late, early in zip(after, before, strict=True))
    assert after[2] < before[2]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="text: expected more than 3"):
        ngram.NgramModel(ids("abc"), max_order=3, vocab_size=3)
    model = ngram.NgramModel(ids("abcabc"), max_order=2, vocab_size=3)
    with pytest.raises(ValueError, match="positions: expected at least 2"):
        model.probabilities(ids("abc"), np.array([1]))

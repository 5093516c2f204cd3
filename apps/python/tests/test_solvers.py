"""The solvers against planted models and other packages."""

import _thread
import signal
import threading

import numpy as np
import pytest

import decompose
from conftest import planted, scattered


def test_cp_finds_the_planted_model(rng):
    dense, x = planted(rng, (12, 10, 8), 3)
    model = decompose.cp(x, 3, seed=1, tol=1e-9, max_iters=500, restarts=2)
    assert model.fit > 0.9999
    assert model.weights.shape == (3,) and [f.shape for f in model.factors] == [(12, 3), (10, 3), (8, 3)]
    np.testing.assert_allclose(model.to_dense(), dense, atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(model.factors[0], axis=0), 1, atol=1e-12)
    assert model.score(x) == pytest.approx(model.fit, abs=1e-6)
    assert model.info["match_scores"].shape[0] == 2
    history = model.history
    assert list(history.restart[:2]) == [1, 1] and history.fit[-1] > 0.99 and "mttkrp_1_seconds" in history


def test_cp_is_that_of_pyttb(rng):
    pyttb = pytest.importorskip("pyttb")
    dense, (coords, values, shape) = scattered(rng, (9, 8, 7), 120)
    start = [rng.random((extent, 4)) for extent in shape]
    ours = decompose.cp((coords, values, shape), 4, init=start, tol=0, max_iters=20)
    theirs, _, output = pyttb.cp_als(
        pyttb.sptensor(coords.T, values[:, None], shape), 4, init=pyttb.ktensor(start), maxiters=20, stoptol=0, printitn=0
    )
    assert ours.fit == pytest.approx(float(output["fit"]), abs=1e-10)
    np.testing.assert_allclose(ours.to_dense(), theirs.full().data, atol=1e-8)
    np.testing.assert_allclose(ours.to_pyttb().full().data, ours.to_dense(), atol=1e-12)


def test_cp_options(rng):
    _, x = planted(rng, (9, 8, 7), 2)
    model = decompose.cp(x, 2, nonneg=True, init="nvecs")
    assert all((factor >= 0).all() for factor in model.factors)
    assert decompose.cp(x, 2, nonneg=[1]).factors[1].min() >= 0
    again = [decompose.cp(x, 2, seed=3, threads=1) for _ in range(2)]
    np.testing.assert_array_equal(again[0].factors[0], again[1].factors[0])


def test_models_have_the_precision_of_the_tensor(rng):
    _, x = planted(rng, (9, 8, 7), 2, np.float32)
    x = decompose.tensor(x)
    assert x.dtype == np.float32
    model = decompose.cp(x, 2)
    assert {part.dtype for part in (model.weights, *model.factors)} == {np.dtype(np.float32)} and model.fit > 0.9
    model = decompose.tucker(x, 2)
    assert {part.dtype for part in (model.core, *model.factors)} == {np.dtype(np.float32)}
    assert {core.dtype for core in decompose.tt(x, 2).cores} == {np.dtype(np.float32)}
    assert model.score(x) == pytest.approx(model.fit, abs=1e-6)
    assert decompose.cp(x.to_dense().astype(np.float64), 2).weights.dtype == np.float64


def test_tucker(rng):
    dense, x = planted(rng, (9, 8, 7), 2)
    model = decompose.tucker(x, 2)
    assert model.ranks == (2, 2, 2) and model.fit > 0.99999
    np.testing.assert_allclose(model.to_dense(), dense, atol=1e-4)
    for method in ("hosvd", "st-hosvd"):
        found = decompose.tucker(x, eps=1e-3, method=method)
        assert found.ranks == (2, 2, 2) and found.fit > 0.999
    positive = decompose.tucker(x, (2, 2, 2), nonneg=True, max_iters=200)
    assert positive.core.min() >= 0 and positive.fit > 0.9


def test_trains(rng):
    dense, x = planted(rng, (6, 5, 4, 3), 2)
    for model in (decompose.tt(x, eps=1e-6), decompose.tt(x, 2), decompose.tt(x, eps=1e-4, method="dmrg")):
        assert model.ranks == (2, 2, 2) and model.fit > 0.999
        np.testing.assert_allclose(model.to_dense(), dense, atol=1e-2)
        coords = rng.integers(0, 3, (4, 20))
        np.testing.assert_allclose(model.predict(coords), model.to_dense()[tuple(coords)], atol=1e-10)


def test_completion_predicts_what_it_has_not_seen(rng):
    dense, _ = planted(rng, (15, 12, 10), 2)
    known = np.where(rng.random(dense.shape) < 0.5, dense, np.nan)
    model = decompose.complete(known, 2, reg=1e-6, seed=1)
    assert model.info["test"]["rmse"] < 1e-2
    np.testing.assert_allclose(model.predict(np.indices(dense.shape).reshape(3, -1)), dense.reshape(-1), atol=0.1)
    names = [name for name, _ in model.info["baselines"]]
    assert "mean by mode 0" in names and "mean by mode 3" not in names
    assert {"epoch", "train_rmse", "val_rmse"} <= set(model.history)


def test_held_out_elements_have_the_shape_of_the_tensor(rng):
    _, x = planted(rng, (8, 7, 6), 1)
    held = ([[0, 1], [2, 0], [1, 1]], [1.0, 2.0])
    model = decompose.complete(x, 1, val=held, test=held)
    assert model.info["test"]["entries"] == 2
    with pytest.raises(ValueError, match="not below its extent 8"):
        decompose.complete(x, 1, val=([[8], [0], [0]], [1.0]))


def test_completion_of_ones_and_zeros_gives_probabilities(rng):
    a, b = rng.standard_normal((30, 1)), rng.standard_normal((20, 1))
    odds = 3 * a @ b.T
    x = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
    model = decompose.complete(x, 1, loss="bernoulli", reg=0.01, seed=2)
    at = model.predict(np.indices(x.shape).reshape(2, -1))
    assert 0 <= at.min() and at.max() <= 1 and model.info["test"]["auc"] > 0.7
    with_offsets = decompose.complete(odds + 5, 1, biases=True, split=None)
    assert with_offsets.info["biases"] == 3


def test_progress_is_heard_and_can_stop(rng):
    _, x = planted(rng, (9, 8, 7), 2)
    heard = []
    decompose.cp(x, 2, tol=0, max_iters=5, progress=heard.append)
    assert [told.iteration for told in heard] == [1, 2, 3, 4, 5] and heard[-1].value > 0.5

    def stop(told):
        raise RuntimeError(f"enough at {told.iteration}")

    with pytest.raises(RuntimeError, match="enough at 1"):
        decompose.cp(x, 2, tol=0, max_iters=100000, progress=stop)


def test_bars_end_where_the_iterations_end(rng, monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    bars = []

    class Bar(tqdm.tqdm):
        def close(self):
            if not any(self is bar for bar in bars):
                bars.append(self)
            super().close()

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    _, x = planted(rng, (9, 8, 7), 2)
    model = decompose.cp(x, 2, restarts=3, max_iters=500, progress=True)
    assert len(model.history.fit) < 1500 and bars[0].total == bars[0].n == len(model.history.fit)
    decompose.rank(x, [1, 2], restarts=2, progress=True)
    assert bars[1].total == bars[1].n == 4

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "set_postfix_str", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decompose.cp(x, 2, tol=0, max_iters=100, progress=True)
    assert bars[2].total == 100


def test_ctrl_c_ends_the_iterations(rng):
    _, x = scattered(rng, (40, 40, 40), 20000)
    # A shell starts what runs in the background deaf to it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            decompose.cp(x, 8, tol=0, max_iters=10**9, max_time=60)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_run_meanwhile(rng):
    _, x = scattered(rng, (40, 40, 40), 20000)
    ticks, over = [], threading.Event()

    def count():
        while not over.wait(0.005):
            ticks.append(1)

    counter = threading.Thread(target=count)
    counter.start()
    decompose.cp(x, 8, tol=0, max_iters=10**9, max_time=0.5)
    over.set()
    counter.join()
    assert len(ticks) > 10


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: decompose.cp(x, 0), "rank"),
        (lambda x: decompose.cp(x, 2, init="svd"), "random, nvecs"),
        (lambda x: decompose.cp(x, 2, tol=-1), "tol"),
        (lambda x: decompose.cp(x, 2, threads=0), "threads is 0"),
        (lambda x: decompose.tucker(x), "either ranks or eps"),
        (lambda x: decompose.tucker(x, 99), "rank 99 of mode 0 is above its extent 5"),
        (lambda x: decompose.tucker(x, (1, 1, 4)), "rank 4 of mode 2 is above"),
        (lambda x: decompose.tt(x, (9, 1)), "rank 9 of bond 0"),
        (lambda x: decompose.complete(x, (1, 9, 1), model="tucker"), "rank 9 of mode 1 exceeds its extent 4"),
        (lambda x: decompose.tucker(x, 2, method="als"), "hooi, hosvd or st-hosvd"),
        (lambda x: decompose.tt(x, [2]), None),
        (lambda x: decompose.tt(x, 2, method="qr"), "als, dmrg or svd"),
        (lambda x: decompose.complete(x, 2, loss="l1"), "gaussian"),
        (lambda x: decompose.complete(x, 2, split=(0.5, 0.1)), "1"),
        (lambda x: decompose.cp((x[0], np.zeros(len(x[1])), x[2]), 2), "zero"),
    ],
)
def test_options_that_make_no_sense(rng, call, words):
    _, x = planted(rng, (5, 4, 3), 1)
    if words is None:
        assert call(x).ranks
        return
    with pytest.raises(ValueError, match=words):
        call(x)


def test_a_slice_of_a_mode_that_is_no_number():
    with pytest.raises((TypeError, ValueError)):
        decompose.cp(([[0, 1], [0, 1]], [1.0, 2.0]), "two")

"""What is refused, and how."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import decompose
from conftest import planted, scattered


def refuse(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_models_that_memory_does_not_hold(rng):
    dense, x = planted(rng, (8, 7, 6), 1)
    huge = (np.array([[0, 2**40], [0, 1], [1, 0]]), [1.0, 2.0])
    refuse(MemoryError, "lower the rank", lambda: decompose.cp(x, 10**9))
    for solver in (decompose.cp, decompose.tucker, decompose.tt):
        refuse(MemoryError, "without gaps", lambda: solver(huge, 1))
    refuse(ValueError, "up to 25", lambda: decompose.cp(([[0]] * 33, [1.0]), 1))


def test_numbers_that_are_not_real(rng):
    complex_array = np.array([1j, 2])
    for call in (
        lambda: decompose.tensor(complex_array),
        lambda: decompose.complete(np.ones((5, 5)) * 1j, 1),
        lambda: decompose.einsum("i->i", complex_array),
    ):
        refuse(TypeError, "real numbers", call)


def test_cells_that_are_not_zero_or_not_known():
    sparse = pytest.importorskip("sparse")
    refuse(ValueError, "fill value", lambda: decompose.tensor(sparse.COO.from_numpy(np.ones((2, 2)), fill_value=1.0)))
    masked = np.ma.array([[1.0, 2, 3], [4, 5, 6]], mask=[[0, 1, 0], [0, 0, 0]])
    refuse(ValueError, "mask", lambda: decompose.tensor(masked))
    model = decompose.complete(masked, 1, split=None, reg=1e-3)
    assert model.info["train"]["entries"] == 5


def test_frames_say_what_is_a_mode():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", "y", None], "b": [1.0, 2.0, 3.0], "v": [1.0, 2.0, 3.0]})
    refuse(ValueError, "which columns", lambda: decompose.cp(frame, 1))
    refuse(ValueError, "'a' has missing", lambda: decompose.tensor(frame, value="v"))
    x = decompose.tensor(frame.dropna(), value="v")
    assert x.shape == (2, 3) and x.labels[1] is None
    kind = pandas.CategoricalDtype(["z", "y", "x"], ordered=True)
    x = decompose.tensor(frame.dropna().astype({"a": kind}), value="v", shape=(3, 3))
    assert list(x.labels[0]) == ["z", "y", "x"] and x.to_dense()[2, 1] == 1.0
    other = decompose.tensor(pandas.DataFrame({"a": ["u", "w"], "b": [1, 2], "v": [1.0, 2.0]}), value="v")
    model = decompose.cp(decompose.tensor(frame.dropna(), value="v"), 1)
    refuse(ValueError, "labels of mode 0", lambda: model.score(other))


def test_options_that_are_no_numbers(rng):
    _, x = planted(rng, (5, 4, 3), 1)
    for call in (
        lambda: decompose.cp(x, "2"),
        lambda: decompose.cp(x, True),
        lambda: decompose.tucker(x, [1.5, 1, 1]),
        lambda: decompose.cp(x, 1, seed=None),
    ):
        refuse(TypeError, "whole number", call)
    for call in (
        lambda: decompose.cp(x, 1, tol="small"),
        lambda: decompose.cp(x, 1, reg="auto"),
        lambda: decompose.cp(x, 1, max_time="1h"),
        lambda: decompose.tt(x, 1, tol=[1e-3]),
    ):
        refuse(TypeError, "use a number", call)
    refuse(TypeError, "progress is 3", lambda: decompose.cp(x, 1, progress=3))
    for call in (
        lambda: decompose.cp(x, -1),
        lambda: decompose.cp(x, 1, seed=-1),
        lambda: decompose.einsum("ij->i", np.ones((2, 2)), threads=-1),
    ):
        refuse(ValueError, "whole number", call)
    refuse(ValueError, "no mode 3", lambda: decompose.cp(x, 1, nonneg=[3]))
    refuse(ValueError, "no mode 3", lambda: decompose.complete(x, 1, time_mode=3))
    refuse(ValueError, "undefined", lambda: decompose.cp(x, 1, init=[np.full((n, 1), np.nan) for n in (5, 4, 3)]))
    refuse(TypeError, "given twice", lambda: decompose.CPDecomposition(3, rank=4))


def test_shapes_that_do_not_fit(rng):
    _, x = planted(rng, (5, 4, 3), 1)
    refuse(ValueError, "for 3 values", lambda: decompose.tensor((np.zeros((3, 2), dtype=int), [1.0, 2.0, 3.0])))
    refuse(ValueError, "2 extents", lambda: decompose.tensor((x[0], x[1]), (5, 4)))
    refuse(ValueError, "make it anew", lambda: decompose.tensor(decompose.tensor(x), (9, 9, 9)))
    model = decompose.cp(x, 1)
    refuse(ValueError, "mode 0 is not below", lambda: model.predict([[5], [0], [0]]))
    refuse(ValueError, "for a model of shape", lambda: model.score(np.ones((6, 4, 3))))
    assert len(model.predict([[], [], []])) == 0
    refuse(ValueError, "no history", lambda: pytest.importorskip("matplotlib") and decompose.CP(
        model.weights, model.factors).plot_convergence())


def test_tensors_and_models_are_copied(rng):
    dense, (coords, values, shape) = scattered(rng, (5, 4, 3), 20)
    x = decompose.tensor((coords, values, shape))
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        np.testing.assert_array_equal(other.to_dense(), dense)
    model = decompose.cp(x, 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).to_dense(), model.to_dense())
    assert repr(model).startswith("<CP rank 2, 5 x 4 x 3, fit ")


def test_the_form_of_a_result_can_be_asked_for(rng):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = scipy_sparse.random_array((20, 20), density=0.3, rng=rng)
    want = (a @ a).toarray()
    np.testing.assert_allclose(decompose.einsum("ij,jk->ik", a, a, out="sparse").toarray(), want, atol=1e-12)
    np.testing.assert_allclose(decompose.einsum("ij,jk->ik", a, a, out="dense"), want, atol=1e-12)
    refuse(ValueError, "sparse, dense or None", lambda: decompose.einsum("ij->i", a, out="csr"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_is_told():
    program = (
        "import os, decompose\n"
        "x = ([[0, 1], [0, 1]], [1.0, 2.0])\n"
        "decompose.cp(x, 1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        decompose.cp(x, 1)\n"
        "    except RuntimeError as why:\n"
        "        os._exit(7 if 'spawn' in str(why) else 8)\n"
        "    os._exit(9)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "7"

"""What a tensor is taken from."""

import numpy as np
import pytest

import decompose
from conftest import scattered


def same(x, dense):
    assert x.shape == dense.shape
    np.testing.assert_array_equal(x.to_dense(), dense)


def test_sources_of_all_kinds_are_the_same_tensor(rng, tmp_path):
    dense, (coords, values, shape) = scattered(rng, (5, 6, 4), 30)
    same(decompose.tensor((coords, values, shape)), dense)
    same(decompose.tensor((list(coords.astype(np.int32)), list(values)), shape), dense)
    same(decompose.tensor(dense), dense)
    sparse = pytest.importorskip("sparse")
    same(decompose.tensor(sparse.COO(coords, values, shape=shape)), dense)
    pyttb = pytest.importorskip("pyttb")
    same(decompose.tensor(pyttb.sptensor(coords.T, values[:, None], shape)), dense)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "x.tns"
    path.write_text("1 1 2 1.5\n2 3 1 -2\n1 1 2 1\n")
    x = decompose.tensor(path)
    assert (x.shape, x.nnz) == ((2, 3, 2), 2)
    assert x.to_dense()[0, 0, 1] == 2.5
    assert decompose.tensor(str(path), duplicates="mean").to_dense()[0, 0, 1] == 1.25


def test_matrices_of_scipy(rng):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    dense, (coords, values, shape) = scattered(rng, (7, 9), 20)
    for matrix in (scipy_sparse.coo_array((values, tuple(coords)), shape=shape).tocsr(), scipy_sparse.csc_matrix(dense)):
        x = decompose.tensor(matrix)
        same(x, dense)
        np.testing.assert_array_equal(x.to_scipy().toarray(), dense)


def test_frames_have_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": ["b", "a", "b"], "week": [2, 0, 2], "stars": [3.0, 4.0, 5.0]})
    x = decompose.tensor(frame, value="stars")
    assert (x.shape, x.nnz, x.modes) == ((2, 3), 2, ["user", "week"])
    assert list(x.labels[0]) == ["a", "b"] and x.labels[1] is None
    assert x.to_dense()[1, 2] == 8.0
    counted = decompose.tensor(frame, modes=["user"])
    np.testing.assert_array_equal(counted.to_dense(), [1.0, 2.0])
    polars = pytest.importorskip("polars")
    columns = {name: list(frame[name]) for name in frame.columns}
    same(decompose.tensor(polars.DataFrame(columns), value="stars"), x.to_dense())


def test_categories_of_numbers_have_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"year": [1999, 2010, 1999], "week": [4, 2, 0], "n": [1.0, 2.0, 4.0]})
    x = decompose.tensor(frame.astype({"year": "category"}), value="n")
    assert x.shape == (2, 5) and list(x.labels[0]) == [1999, 2010] and x.labels[1] is None
    assert x.to_dense()[0, 4] == 1.0 and x.to_dense()[1, 2] == 2.0


def test_single_precision_stays():
    x = decompose.tensor(([[0, 1]], np.array([1, 2], dtype=np.float32)))
    assert x.dtype == np.float32
    assert decompose.tensor(([[0, 1]], [1, 2])).dtype == np.float64


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (([[0, -1]], [1.0, 2.0]), "count from 0"),
        (([[0.5, 1]], [1.0, 2.0]), "use integers"),
        (([[0, 1]], [1.0, np.inf]), "finite numbers"),
        (([[0, 1]], [1.0, 2.0], (1,)), "coordinate 1 of mode 0 is not below its extent 1"),
        (([[0, 1], [0]], [1.0, 2.0]), "mode"),
        (np.array([[1.0, np.nan]]), "NaN"),
        (([[0, 1]],), "tuple of 1"),
    ],
)
def test_bad_input_is_told(x, words):
    with pytest.raises((ValueError, TypeError), match=words):
        decompose.tensor(x)


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="no such file"):
        decompose.tensor("absent.tns")


def test_duplicates_by_a_wrong_name():
    with pytest.raises(ValueError, match="sum, mean"):
        decompose.tensor(([[0, 0]], [1.0, 2.0]), duplicates="add")

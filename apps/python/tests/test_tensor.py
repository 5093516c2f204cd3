"""What a tensor is taken from."""

import datetime

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
    same(decompose.tensor(pyttb.sptensor(shape=shape)), np.zeros(shape))
    same(decompose.tensor(sparse.DOK.from_numpy(dense)), dense)


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
        (([[0, 1]], np.ma.array([1.0, 2.0], mask=[0, 1])), "masked"),
        ((np.ma.array([[0, 1]], mask=[[0, 1]]), [1.0, 2.0]), "masked"),
        (([[0, 1]], [1j, 2]), "not complex"),
        (([[0, 1]], ["1", "2"]), "are numbers"),
        ((np.zeros((2, 3), dtype=int), [1.0, 2.0]), "one row of coordinates per mode"),
        (([], []), "needs a shape"),
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


def test_arrays_of_all_integers_and_layouts(rng):
    dense, (coords, values, shape) = scattered(rng, (5, 6, 4), 30)
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"):
        same(decompose.tensor((coords.astype(kind), values, shape)), dense)
    wide = np.zeros((3, 60), dtype=np.int64)
    wide[:, ::2] = coords
    same(decompose.tensor((wide[:, ::2], np.repeat(values, 2)[::2], shape)), dense)
    same(decompose.tensor((coords[:, ::-1], values[::-1], shape)), dense)
    same(decompose.tensor((np.asfortranarray(coords), values.astype(">f8"), shape)), dense)
    packed = np.zeros(30, dtype=[("byte", "u1"), ("value", "f8"), ("row", "i8")])
    packed["value"], packed["row"] = values, coords[0]
    same(decompose.tensor(([packed["row"], *coords[1:]], packed["value"], shape)), dense)
    frozen = [row.copy() for row in coords]
    for row in frozen:
        row.setflags(write=False)
    same(decompose.tensor((frozen, values, shape)), dense)
    assert decompose.tensor((coords.astype(np.int32), values.astype(np.float16))).dtype == np.float64
    model = decompose.cp(dense, 2)
    np.testing.assert_array_equal(model.predict(coords[:, ::-1].astype(np.int16)), model.predict(coords)[::-1])


def test_arrays_are_left_as_they_are(rng):
    coords, values = np.array([[2, 0, 0], [1, 1, 1]]), np.array([3.0, 2.0, 1.0])
    same(decompose.tensor((coords, values)), np.array([[0, 3.0], [0, 0], [0, 3.0]]))
    np.testing.assert_array_equal(coords, [[2, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(values, [3.0, 2.0, 1.0])


def test_large_coordinates():
    most = 2**64 - 2
    x = decompose.tensor((np.array([[0, most], [0, 1]], dtype=np.uint64), [1.0, 2.0]))
    assert x.shape == (2**64 - 1, 2) and x.coords[0].dtype == np.uint64 and list(x.coords[0]) == [0, most]
    with pytest.raises(ValueError, match="the largest extent"):
        decompose.tensor((np.array([[0, 2**64 - 1]], dtype=np.uint64), [1.0, 2.0]))
    with pytest.raises(ValueError, match="an extent is -2"):
        decompose.tensor(([[0, 1]], [1.0, 2.0]), (-2,))


def frames(columns):
    """The same columns as frames of each package."""
    made = []
    for package in ("pandas", "polars"):
        made.append(pytest.importorskip(package).DataFrame(columns))
    return made


def test_labels_stand_in_a_documented_order():
    columns = {
        "text": ["b", "a\n", "é", "B", "b"],
        "part": [10.5, 2.5, -1.5, 2.5, 0.0],
        "day": [datetime.date(2024, 2, 10), datetime.date(2024, 2, 9), datetime.date(2023, 12, 1)] + [datetime.date(2025, 1, 1)] * 2,
        "yes": [True, False, True, True, False],
        "whole": [3.0, 0.0, 1.0, 1.0, 2.0],
    }
    want = [
        ["B", "a\n", "b", "é"],
        ["-1.5", "0.0", "2.5", "10.5"],
        ["2023-12-01", "2024-02-09", "2024-02-10", "2025-01-01"],
        ["false", "true"],
    ]
    for frame in frames(columns):
        x = decompose.tensor(frame, modes=list(columns))
        assert [[label.lower() if label in ("True", "False") else label for label in own] for own in x.labels[:4]] == want
        assert x.labels[4] is None and x.shape == (4, 4, 4, 2, 4)
        for row in range(5):
            place = [list(own).index(str(columns[name][row])) for own, name in zip(x.labels[:3], columns)]
            assert x.to_dense()[(*place, int(columns["yes"][row]), int(columns["whole"][row]))] == 1.0


def test_times_stand_in_their_order():
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime(["2024-01-02 10:00", "2024-01-02 09:00", "2024-01-02 10:00"])
    for column in (times, times.tz_localize("Europe/Berlin")):
        x = decompose.tensor(pandas.DataFrame({"time": column}), modes=["time"])
        np.testing.assert_array_equal(x.to_dense(), [1.0, 2.0])
        assert x.labels[0][0].startswith("2024-01-02 09:00")


def test_entries_of_one_text_are_one_label():
    pandas = pytest.importorskip("pandas")
    x = decompose.tensor(pandas.DataFrame({"a": np.array([1, "1", 2.5, "x"], dtype=object)}), modes=["a"])
    assert list(x.labels[0]) == ["1", "2.5", "x"]
    np.testing.assert_array_equal(x.to_dense(), [2.0, 1.0, 1.0])


def test_categories_keep_their_order_and_places():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["z", "y", "x", "unused"]
    column = ["x", "z", "x"]
    for frame in (
        pandas.DataFrame({"a": pandas.Categorical(column, names)}),
        polars.DataFrame({"a": polars.Series(column, dtype=polars.Enum(names))}),
    ):
        x = decompose.tensor(frame, modes=["a"])
        assert list(x.labels[0]) == names
        np.testing.assert_array_equal(x.to_dense(), [1.0, 0.0, 2.0, 0.0])
        assert len(decompose.tensor(frame, modes=["a"], shape=(3,)).labels[0]) == 3
        assert decompose.tensor(frame, modes=["a"], shape=(9,)).shape == (9,)
    x = decompose.tensor(polars.DataFrame({"a": polars.Series(column, dtype=polars.Categorical)}), modes=["a"])
    assert list(x.labels[0]) == ["x", "z"]


def test_frames_of_other_packages():
    class Frame:
        columns = ["a", "b"]

        def __getitem__(self, name):
            return {"a": np.array(["y", "x", "y"], dtype=object), "b": [2, 0, 1]}[name]

        def __len__(self):
            return 3

    x = decompose.tensor(Frame(), modes=["a", "b"])
    assert list(x.labels[0]) == ["x", "y"] and x.labels[1] is None
    np.testing.assert_array_equal(x.to_dense(), [[1.0, 0, 0], [0, 1.0, 1.0]])


def test_missing_entries_are_told():
    columns = {"text": ["a", None], "part": [0.5, None], "whole": [1, None], "v": [1.0, None]}
    for frame in frames(columns):
        for name in ("text", "part", "whole"):
            with pytest.raises(ValueError, match=f"'{name}' has missing"):
                decompose.tensor(frame, modes=[name])
    for frame in frames({"a": [0, 1], "v": [1.0, None]}):
        with pytest.raises(ValueError, match="value 1 is nan"):
            decompose.tensor(frame, value="v")
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "v": pandas.array([1, None], dtype="Float64")})
    with pytest.raises(ValueError, match="'a' has missing"):
        decompose.tensor(whole, modes=["a"])
    with pytest.raises(ValueError, match="'a' has missing"):
        decompose.tensor(whole.astype(object), modes=["a"])
    with pytest.raises(ValueError, match="value 1 is nan"):
        decompose.tensor(whole.assign(a=[0, 1]), value="v")
    for kind in (object, "category"):
        with pytest.raises(ValueError, match="'a' has missing"):
            decompose.tensor(pandas.DataFrame({"a": ["x", None]}).astype(kind), modes=["a"])


def test_frames_that_are_no_tensor():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    twice = pandas.DataFrame([[0, 1, 1.0]], columns=["a", "a", "v"])
    text = pandas.DataFrame({"a": [0, 1], "v": ["1.5", "2"]})
    empty = pandas.DataFrame({"a": [], "v": []})
    cases = [
        (ValueError, "'a' occurs twice", lambda: decompose.tensor(twice, value="v")),
        (ValueError, "'a' occurs twice", lambda: decompose.tensor(text, modes=["a", "a"])),
        (ValueError, "no column 'b'", lambda: decompose.tensor(text, modes=["b"])),
        (ValueError, "no column of the frame is a mode", lambda: decompose.tensor(text[["v"]], value="v")),
        (TypeError, "column 'v' holds others", lambda: decompose.tensor(text, value="v")),
        (TypeError, "column 'v' holds others", lambda: decompose.tensor(polars.DataFrame(text.to_dict("list")), value="v")),
        (ValueError, "needs a shape", lambda: decompose.tensor(empty, value="v")),
        (ValueError, "count from 0", lambda: decompose.tensor(pandas.DataFrame({"a": [0, -1]}), modes=["a"])),
        (TypeError, "collect", lambda: decompose.tensor(polars.DataFrame({"a": [1]}).lazy(), modes=["a"])),
        (ValueError, "name columns", lambda: decompose.tensor(([[0]], [1.0]), value="v")),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind, match=words):
            call()
    assert decompose.tensor(empty, value="v", shape=(3,)).nnz == 0
    methods = pandas.DataFrame({"collect": ["x", "y"], "columns": [1, 0], "coords": [0, 0]})
    assert decompose.tensor(methods, modes=list(methods.columns)).shape == (2, 2, 1)
    assert decompose.tensor(methods, modes="collect").modes == ["collect"]

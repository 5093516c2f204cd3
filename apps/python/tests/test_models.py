"""Models on disk, at cells, in other packages."""

import gzip
import inspect
import json

import numpy as np
import pytest

import decompose
from conftest import planted, scattered


def models(x):
    return [decompose.cp(x, 2), decompose.tucker(x, (2, 3, 2)), decompose.tt(x, (2, 2))]


def test_models_are_saved_and_loaded(rng, tmp_path):
    dense, x = planted(rng, (7, 6, 5), 2)
    for model in models(x):
        folder = tmp_path / model.kind
        assert model.save(folder).endswith("model.npz")
        loaded = decompose.load(folder)
        assert type(loaded) is type(model) and loaded.shape == dense.shape
        np.testing.assert_array_equal(loaded.to_dense(), model.to_dense())
        coords = rng.integers(0, 5, (3, 40))
        np.testing.assert_allclose(loaded.predict(coords), model.to_dense()[tuple(coords)], atol=1e-12)
        assert loaded.norm() == pytest.approx(np.linalg.norm(model.to_dense()))
        with np.load(folder / "model.npz") as archive:
            assert len(archive.files) >= 3


def test_what_values_mean_is_saved(rng, tmp_path):
    x = (rng.random((12, 9)) < 0.5).astype(float)
    model = decompose.complete(x, 1, loss="bernoulli", max_iters=20)
    model.save(tmp_path)
    coords = np.indices(x.shape).reshape(2, -1)
    np.testing.assert_array_equal(decompose.load(tmp_path).predict(coords), model.predict(coords))


def test_scores_are_those_of_all_cells(rng):
    dense, x = scattered(rng, (7, 6, 5), 60)
    for model in models(x):
        want = 1 - np.linalg.norm(dense - model.to_dense()) / np.linalg.norm(dense)
        assert model.score(x) == pytest.approx(want, abs=1e-9)
        assert model.fit == pytest.approx(want, abs=1e-9)


def test_models_of_tensorly(rng):
    tensorly = pytest.importorskip("tensorly")
    _, x = planted(rng, (7, 6, 5), 2)
    for model in models(x):
        np.testing.assert_allclose(model.to_tensorly().to_tensor(), model.to_dense(), atol=1e-10)
    assert tensorly.get_backend() == "numpy"


def test_labels_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"fruit": ["fig", "kiwi", "fig"], "day": ["mo", "mo", "tu"], "n": [5.0, 1.0, 4.0]})
    model = decompose.cp(decompose.tensor(frame, value="n"), 1)
    assert model.top(0, 0, 1)[0][0] == "fig"
    assert len(model.history.to_pandas()) == len(model.history.fit)


def test_saved_models_keep_their_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    fruit = ["fig", "kiwi", "fig", "new\nline"]
    frame = pandas.DataFrame({"fruit/kind": fruit, "day": [0, 0, 1, 2], "n": [5.0, 1.0, 4.0, 2.0]})
    x = decompose.tensor(frame, value="n")
    for solved in (decompose.cp(x, 1), decompose.tucker(x, 1), decompose.tt(x, 1), decompose.complete(x, 1, split=None)):
        folder = tmp_path / solved.kind
        solved.save(folder)
        (folder / "mode-2-old.map").write_text("a\nb\nc\n")
        solved.save(folder)
        assert (folder / "mode-1-fruit_kind.map").read_text() == "fig\nkiwi\nnew line\n"
        assert sorted(file.name for file in folder.iterdir()) == ["mode-1-fruit_kind.map", "model.npz"]
        again = decompose.load(folder)
        assert list(again.labels[0]) == ["fig", "kiwi", "new line"] and again.labels[1] is None
        assert again.modes == ["fruit_kind", None] and solved.modes == ["fruit/kind", "day"]
        assert decompose.load(folder / "model.npz").labels[0] == again.labels[0]
    assert decompose.load(tmp_path / "cp").top(0, 0, 1)[0][0] == "fig"


def test_labels_of_a_tensor_are_left_alone(tmp_path):
    (tmp_path / "mode-1-city.map").write_text("Rome\nOslo\n")
    model = decompose.cp(np.ones((2, 3)), 1)
    with pytest.raises(FileExistsError, match="another folder"):
        model.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mode-1-city.map"]


def test_labels_that_a_run_has_read_are_found(tmp_path):
    run, data = tmp_path / "run", tmp_path / "data"
    decompose.cp(np.ones((2, 3)), 1).save(run)
    data.mkdir()
    with gzip.open(data / "mode-1-city.map.gz", "wt") as out:
        out.write("Rome\r\nOslo\r\n")
    (data / "2.map").write_text("too\nshort\n")
    labels = [{"mode": 1, "name": "city", "file": str(data / "mode-1-city.map.gz"), "labels": 2}]
    labels.append({"mode": 2, "name": "mode 2", "file": str(data / "2.map"), "labels": 2})
    (run / "run.json").write_text(json.dumps({"input": {"labels": labels}}))
    model = decompose.load(run)
    assert model.labels == [["Rome", "Oslo"], None] and model.modes == ["city", None]
    for other in ("{}", "[]", '{"input": {"labels": 3}}', "no json"):
        (run / "run.json").write_text(other)
        assert decompose.load(run).labels == [None, None]


def test_labels_that_were_written_are_those_of_the_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"year": [1999, 2010], "v": [1.0, 2.0]}).astype({"year": "category"})
    x = decompose.tensor(frame, value="v", shape=(3,))
    model = decompose.CP(np.ones(1), [np.ones((3, 1))], labels=x.labels, modes=x.modes)
    model.save(tmp_path)
    assert (tmp_path / "mode-1-year.map").read_text() == "1999\n2010\n\n"
    decompose.CP(np.ones(1), [np.ones((2, 1))], labels=x.labels).save(tmp_path)
    assert decompose.load(tmp_path).score(decompose.tensor(frame, value="v")) < 1
    assert model.top(0, 0, 3) == [(1999, 1.0), (2010, 1.0), (2, 1.0)]


def test_components_are_a_table():
    factors = [np.array([[0.1, 1], [0.9, 1], [-0.95, 1]]), np.array([[0.5, 0], [0.5, -2]])]
    model = decompose.CP(np.array([1.0, 3.0]), factors, labels=[["a", "b", "c"], None], modes=["letter", None])
    table = model.components(2)
    assert list(table) == ["component", "weight", "mode", "name", "place", "index", "label", "value"]
    # The second modes of both components: all equal, and one entry that is not 0.
    assert [list(row) for row in zip(*table.values())] == [
        [1, 3.0, 1, None, 0, 1, None, -2.0],
        [0, 1.0, 0, "letter", 0, 2, "c", -0.95],
        [0, 1.0, 0, "letter", 1, 1, "b", 0.9],
    ]
    pandas = pytest.importorskip("pandas")
    assert isinstance(table.to_pandas(), pandas.DataFrame) and len(table.to_pandas()) == 3
    assert len(decompose.CP(np.zeros(1), [np.ones((2, 1))]).components()["value"]) == 0
    tucker = decompose.Tucker(np.ones((1, 2)), [np.eye(3)[:, :1], np.eye(2)]).components()
    assert list(tucker["component"]) == [0, 0, 1] and list(tucker["mode"]) == [0, 1, 1]
    assert np.isnan(tucker["weight"]).all()


def test_coordinates_outside_are_told(rng):
    _, x = planted(rng, (4, 3, 2), 1)
    with pytest.raises(ValueError):
        decompose.cp(x, 1).predict([[0], [0], [2]])
    model = decompose.cp(x, 1)
    for coords, words in (
        ([[0, 1], [0, 1]], "2 rows"),
        ([[0, 1], [0], [0, 1]], "shapes"),
        ([0, 0, 0], "shapes"),
        ([[0], [-1], [0]], "coordinate of mode 1 is -1"),
        ([[0], [0], [2]], "coordinate 2 of mode 2 is not below its extent 2"),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(coords)
    with pytest.raises(TypeError, match="use integers"):
        model.predict([[0.5], [0], [0]])


def test_the_history_is_drawn(rng):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    _, x = planted(rng, (6, 5, 4), 2)
    axes = decompose.cp(x, 2, restarts=2).plot_convergence()
    assert len(axes.lines) == 2 and axes.get_xlabel() == "iteration"
    axes.figure.clear()
    axes = decompose.complete(np.ones((6, 5)) * np.arange(5), 1).plot_convergence()
    assert "rmse" in axes.get_ylabel()


def test_estimators_are_cloned(rng):
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed")
    _, x = planted(rng, (7, 6, 5), 2)
    start = [rng.random((extent, 2)) for extent in (7, 6, 5)]
    estimators = [
        decompose.CPDecomposition(rank=2, nonneg=[1], random_state=3, init=start),
        decompose.TuckerDecomposition((2, 2, 1)),
        decompose.TensorTrainDecomposition(eps=0.1),
        decompose.TensorCompletion(2, test=([[0], [0], [0]], [1.0], (7, 6, 5)), split=None),
    ]
    for estimator in estimators:
        copy = base.clone(estimator)
        assert type(copy) is type(estimator) and copy is not estimator
        assert repr(copy) == repr(estimator)
        assert not hasattr(base.clone(estimator.fit(x)), "model_")
    copy = base.clone(estimators[0])
    np.testing.assert_array_equal(copy.fit(x).factors_[0], estimators[0].factors_[0])


def test_estimators_show_their_options():
    shown = inspect.signature(decompose.CPDecomposition).parameters
    assert list(shown)[:2] == ["rank", "random_state"] and shown["restarts"].default == 1
    assert repr(decompose.CPDecomposition(3)).startswith("CPDecomposition(rank=3, random_state=0, nonneg=False")


def test_estimators(rng):
    _, x = planted(rng, (7, 6, 5), 2)
    estimator = decompose.CPDecomposition(2, random_state=1, restarts=2)
    params = estimator.get_params()
    assert (params["random_state"], params["rank"], params["restarts"], params["tol"]) == (1, 2, 2, 1e-5)
    assert estimator.rank == 2
    assert estimator.fit(x) is estimator
    assert estimator.weights_.shape == (2,) and estimator.score(x) > 0.9
    np.testing.assert_array_equal(estimator.factors_[0], decompose.cp(x, 2, seed=1, restarts=2).factors[0])
    assert decompose.TuckerDecomposition(ranks=2).fit_transform(x).ranks == (2, 2, 2)
    assert decompose.TensorTrainDecomposition(eps=1e-3).fit(x).ranks_ == (2, 2)
    completion = decompose.TensorCompletion(2, reg=1e-6).fit(x)
    assert completion.score(x) > -0.1
    assert completion.set_params(rank=1).fit(x).model_.rank == 1
    with pytest.raises(TypeError, match="no option"):
        decompose.CPDecomposition(2, components=3)
    with pytest.raises(AttributeError, match="was it fitted"):
        decompose.CPDecomposition(2).factors_

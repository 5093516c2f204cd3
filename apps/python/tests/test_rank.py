"""Which rank to choose."""

import numpy as np
import pytest

import decompose
from conftest import planted, scattered


def test_the_planted_rank_is_found(rng):
    _, x = planted(rng, (12, 10, 8), 2)
    heard = []
    scan = decompose.rank(x, range(1, 5), restarts=4, reg=1e-6, seed=1, progress=heard.append)
    assert scan.recommended == 2
    assert [(told.rank, told.restart) for told in heard] == [(rank, k) for rank in range(1, 5) for k in range(1, 5)]
    table = scan.table
    assert list(table["rank"]) == [1, 2, 3, 4] and table.reached.max() <= 4
    assert table.val[1] < 0.05 * table.val[0] and table.agreement[1] > 0.99
    assert min(told.value for told in heard if told.rank == 2) == table.val[1]
    assert (table.worst >= table.val).all() and (table.seconds > 0).all()
    assert "99%" in scan.why[0] and scan.error == "RMSE" and "recommended 2" in repr(scan)


def test_it_is_that_of_the_completions(rng):
    _, x = planted(rng, (9, 8, 7), 2)
    scan = decompose.rank(x, [3, 2], seed=5)
    assert list(scan.table["rank"]) == [2, 3]
    model = decompose.complete(x, 3, seed=5)
    errors = [model.info[part]["rmse"] for part in ("train", "val", "test")]
    assert [scan.table[part][1] for part in ("train", "val", "test")] == errors
    assert np.isnan(scan.table.agreement).all() and "one start" in scan.why[0]


def test_cells_that_are_not_listed_are_zero_for_cp(rng):
    _, x = scattered(rng, (9, 8, 7), 150)
    scan = decompose.rank(x, [2, 4], method="cp", restarts=3, seed=2)
    for row, rank in enumerate([2, 4]):
        model = decompose.cp(x, rank, restarts=3, seed=2)
        assert scan.table.fit[row] == pytest.approx(model.fit, abs=1e-12)
        scores = model.info["match_scores"]
        assert scan.table["match"][row] == pytest.approx(scores[np.triu_indices(3, 1)].mean(), abs=1e-9)


def test_scans_are_shown(rng):
    pandas = pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    _, x = planted(rng, (9, 8, 7), 2)
    scan = decompose.rank(x, [1, 2], restarts=2)
    frame = scan.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.index.name == "rank" and len(frame) == 2
    axes = scan.plot()
    assert axes[0].get_ylabel() == "RMSE" and len(axes[0].lines) == 4
    axes[0].figure.clear()


def test_values_that_tell_nothing():
    scan = decompose.rank(np.ones((6, 5, 4)), [1, 2])
    assert scan.recommended is None and "same value" in scan.why[0]


def test_a_scan_can_be_stopped(rng):
    _, x = planted(rng, (9, 8, 7), 2)

    def stop(told):
        raise RuntimeError(f"enough of rank {told.rank}")

    with pytest.raises(RuntimeError, match="enough of rank 1"):
        decompose.rank(x, range(1, 1000), restarts=3, progress=stop)


def test_scans_that_make_no_sense(rng):
    _, x = planted(rng, (5, 4, 3), 1)
    cases = [
        (ValueError, "ranks is empty", lambda: decompose.rank(x, [])),
        (ValueError, "whole number from 1", lambda: decompose.rank(x, range(3))),
        (TypeError, "whole number", lambda: decompose.rank(x, "1:8")),
        (ValueError, "complete or cp", lambda: decompose.rank(x, [1], method="tucker")),
        (ValueError, "use split", lambda: decompose.rank(x, [1], method="cp", test=x)),
        (ValueError, "NaN", lambda: decompose.rank(np.array([[1.0, np.nan]]), [1], method="cp")),
        (MemoryError, "lower the rank", lambda: decompose.rank(x, [10**10])),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind, match=words):
            call()

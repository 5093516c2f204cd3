"""Small tensors with known models."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def planted(rng, shape, rank, kind=np.float64):
    """Factors, and the tensor of their components as (coords, values, shape): every cell is listed."""
    factors = [rng.random((extent, rank)) + 0.1 for extent in shape]
    dense = np.zeros(shape)
    for r in range(rank):
        term = np.ones(())
        for factor in factors:
            term = np.multiply.outer(term, factor[:, r])
        dense += term
    coords = np.stack([c.reshape(-1) for c in np.indices(shape)])
    return dense, (coords, dense.reshape(-1).astype(kind), shape)


def scattered(rng, shape, count):
    """A sparse tensor of random cells, as (coords, values, shape) and dense."""
    cells = rng.choice(int(np.prod(shape)), count, replace=False)
    coords = np.stack(np.unravel_index(cells, shape))
    values = rng.standard_normal(count)
    dense = np.zeros(shape)
    dense[tuple(coords)] = values
    return dense, (coords, values, shape)

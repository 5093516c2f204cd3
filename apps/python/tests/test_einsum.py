"""Expressions against NumPy."""

import numpy as np
import pytest

import decompose
from conftest import scattered


def test_products_are_those_of_numpy(rng):
    x, list_x = scattered(rng, (8, 7, 6), 60)
    y, list_y = scattered(rng, (7, 9), 30)
    b, c = rng.standard_normal((7, 4)), rng.standard_normal((6, 4))
    cases = [
        ("ijk,jr,kr->ir", (list_x, b, c), (x, b, c)),
        ("ijk,jl->ikl", (list_x, list_y), (x, y)),
        ("ijk,ijk->i", (list_x, list_x), (x, x)),
        ("jr,jr->r", (b, b), (b, b)),
        ("ijk->", (list_x,), (x,)),
    ]
    for expression, given, dense in cases:
        have = decompose.einsum(expression, *given)
        if isinstance(have, decompose.SparseTensor):
            have = have.to_dense()
        np.testing.assert_allclose(have, np.einsum(expression, *dense), atol=1e-12, err_msg=expression)


def test_sums_take_operands_by_name(rng):
    x, list_x = scattered(rng, (8, 7), 20)
    y, w = rng.standard_normal((7, 5)), rng.standard_normal((8, 5))
    have = decompose.einsum("Z(i,k) = X(i,j) * Y(j,k) - 2 * W(i,k)", X=list_x, Y=y, W=w)
    np.testing.assert_allclose(have, x @ y - 2 * w, atol=1e-12)
    have = decompose.einsum("Z(i,j) = relu(X(i,j))", X=list_x)
    np.testing.assert_allclose(have.to_dense(), np.maximum(x, 0), atol=0)


def test_results_have_the_form_of_the_operands(rng):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = scipy_sparse.random_array((300, 200), density=0.01, rng=rng, format="csr")
    b = scipy_sparse.random_array((200, 300), density=0.01, rng=rng, format="csc")
    product = decompose.einsum("ij,jk->ik", a, b)
    assert scipy_sparse.issparse(product)
    np.testing.assert_allclose(product.toarray(), (a @ b).toarray(), atol=1e-12)
    sparse = pytest.importorskip("sparse")
    c = sparse.COO(a)
    assert isinstance(decompose.einsum("ij,ij->ij", c, c), sparse.COO)


def test_kernels_are_explained(rng):
    _, x = scattered(rng, (8, 7, 6), 60)
    b = rng.standard_normal((7, 4))
    text = decompose.explain("ijk,jr->ikr", x, b)
    assert "nest" in text and "trees" in text and "predicted" in text
    sums = decompose.explain("Z(i,k) = X(i,j) * Y(j,k) - 2 * W(i,k) * V(k,l)", X=b, Y=b.T, W=b @ b.T, V=b)
    assert len(sums.splitlines()) == 2 and "products of dense matrices" in sums
    with pytest.raises(ValueError, match="W"):
        decompose.einsum("Z(i,k) = X(i,j) * W(j,k)", X=b, Y=b.T)


@pytest.mark.parametrize(
    ("expression", "words"),
    [("ij,jk->il", "expression"), ("ij->i", "1 operands|operands"), ("Z(i) = X(i", "expression")],
)
def test_expressions_that_make_no_sense(rng, expression, words):
    with pytest.raises(ValueError, match=words):
        decompose.einsum(expression, np.ones((2, 2)), np.ones((2, 2)))

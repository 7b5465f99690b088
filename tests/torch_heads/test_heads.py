"""Heads against the reference, against BCEWithLogitsLoss, and as modules of torch."""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_matrix
from support.torch_trees import DIM, fill, random_bias, trees_with_labels

from labeltree.errors import DataError, ParameterError
from labeltree.reference import training as reference
from labeltree.tree import LabelTree
from labeltree.trees.shapes import build_complete, build_flat

pytest.importorskip("torch.nn", reason="torch is not installed: pip install 'labeltree[torch]'")
import torch

from labeltree.torch import HSMHead, PLTHead

HEADS = {"plt": PLTHead, "hsm": HSMHead}
Case = tuple[LabelTree, list[list[int]], int]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)


def tree_of(n_labels: int, arity: int) -> LabelTree:
    return build_complete(np.ones(n_labels, np.int64), arity)


def make(link: str, case: Case, **how: Any) -> Any:
    tree, _, seed = case
    head = HEADS[link](DIM, tree, random_bias(tree, seed, link), **how)
    fill(head, seed)
    return head


def as_reference(head: Any) -> reference.Parameters:
    weights, bias = (array.astype(np.float64) for array in head.arrays())
    squares = np.zeros(len(bias))
    return reference.Parameters(
        reference.Rows(np.eye(DIM), np.zeros(DIM)),
        reference.Rows(weights, squares),
        reference.Rows(bias[:, None], squares),
    )


def reference_of_row(
    parameters: reference.Parameters, head: Any, labels: list[int], h: np.ndarray
) -> tuple[dict[int, float], float]:
    """Derivatives by the nodes' scores and the loss; of a softmax the mean over the row's labels."""
    if head.link == "plt":
        return reference.plt_gradients(parameters, head.tree, set(labels), h)
    total, loss = {}, 0.0
    for label in labels:
        gradients, own = reference.hsm_gradients(parameters, head.tree, label, h)
        loss += own / len(labels)
        for node, gradient in gradients.items():
            total[node] = total.get(node, 0.0) + gradient / len(labels)
    return total, loss


def can_be(tree: LabelTree, bias: np.ndarray, label: int) -> bool:
    """Whether no node of a label's path is impossible."""
    return not any(bias[node] == -np.inf for node in reference.positive_nodes(tree, {label}))


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("link", HEADS)
@given(case=trees_with_labels())
def test_loss_and_gradients_are_those_of_the_reference(link: str, sparse: bool, case: Case) -> None:
    tree, labels, _ = case
    head = make(link, case, sparse=sparse)
    if link == "hsm":  # of an impossible label the reference pays its largest loss, and the head nothing
        bias = head.arrays()[1]
        labels = [[label for label in row if can_be(tree, bias, label)] for row in labels]
    parameters = as_reference(head)
    head = head.double()
    h = torch.randn(len(labels), DIM, dtype=torch.float64, requires_grad=True)
    n_examples = len(labels) if link == "plt" else max(1, sum(map(bool, labels)))
    out = head(h, labels)
    out.loss.backward()
    of_weights, of_bias = np.zeros((tree.n_nodes, DIM)), np.zeros(tree.n_nodes)
    of_h, losses = np.zeros((len(labels), DIM)), []
    for row, row_labels in enumerate(labels):
        vector = h[row].detach().numpy()
        gradients, loss = reference_of_row(parameters, head, row_labels, vector)
        losses.append(loss)
        for node, gradient in gradients.items():
            of_weights[node] += gradient * vector / n_examples
            of_bias[node] += gradient / n_examples
            of_h[row] += gradient * parameters.weights.values[node] / n_examples
    close = dict(rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(out.losses.detach(), losses, **close)
    np.testing.assert_allclose(out.loss.detach(), sum(losses) / n_examples, **close)
    assert head.weight.grad.is_sparse == head.bias.grad.is_sparse == sparse
    np.testing.assert_allclose(head.weight.grad.to_dense(), of_weights, **close)
    np.testing.assert_allclose(head.bias.grad.to_dense(), of_bias, **close)
    np.testing.assert_allclose(h.grad, of_h, **close)


def test_a_flat_tree_is_bce_over_all_labels() -> None:
    n_labels, n_rows = 17, 9
    first_bias = np.zeros(n_labels + 1)
    first_bias[0] = np.inf  # every row has a label
    head = PLTHead(DIM, build_flat(n_labels), first_bias)
    fill(head, 3)
    Y = (torch.rand(n_rows, n_labels) < 0.3).float()
    Y[:, 4] = 1.0
    layer = torch.nn.Linear(DIM, n_labels)
    leaves = torch.from_numpy(head.tree.leaf_of_label.astype(np.int64))
    with torch.no_grad():
        layer.weight.copy_(head.weight[leaves])
        layer.bias.copy_(head.bias[leaves])
    h = torch.randn(n_rows, DIM)
    ours, theirs = h.clone().requires_grad_(), h.clone().requires_grad_()
    expected = torch.nn.BCEWithLogitsLoss(reduction="none")(layer(theirs), Y).sum(dim=1)
    found = head(ours, Y)
    torch.testing.assert_close(found.losses, expected, rtol=1e-6, atol=1e-6)
    found.loss.backward()
    expected.mean().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(head.weight.grad.to_dense()[leaves], layer.weight.grad, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(head.log_prob(h).exp(), torch.sigmoid(layer(h)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("link", HEADS)
@given(case=trees_with_labels())
def test_log_probabilities_are_the_logarithms_of_what_the_loss_is_of(link: str, case: Case) -> None:
    """And those that the search finds, which multiplies along paths as the definition does."""
    tree, _, _ = case
    head = make(link, case)
    h = torch.randn(3, DIM)
    found = head.log_prob(h).detach()
    assert found.shape == (3, tree.n_labels)
    ids, best = head.predict(h, k=tree.n_labels)
    torch.testing.assert_close(best, found.exp().gather(1, ids), rtol=1e-5, atol=1e-6)
    assert torch.equal(ids.sort(dim=1).values, torch.arange(tree.n_labels).expand(3, -1))
    some = [tree.n_labels - 1, 0, tree.n_labels - 1]
    torch.testing.assert_close(head.log_prob(h, some).detach(), found[:, some], rtol=1e-5, atol=1e-6)
    if link == "hsm" and can_all_be(head):
        torch.testing.assert_close(found.exp().sum(dim=1), torch.ones(3), rtol=1e-5, atol=1e-5)


def can_all_be(head: Any) -> bool:
    return bool(np.isfinite(head.arrays()[1][1:]).all())


def test_gradients_flow_through_log_prob() -> None:
    head = HSMHead(DIM, tree_of(9, 3))
    h = torch.randn(2, DIM, requires_grad=True)
    fill(head, 1)
    (-head.log_prob(h, [4])).sum().backward()
    from_forward = h.grad.clone()
    h.grad = None
    head(h, [[4], [4]]).losses.sum().backward()
    torch.testing.assert_close(h.grad, from_forward, rtol=1e-5, atol=1e-6)


ONE_HOT, NOISY = torch.eye(4).repeat(6, 1), (torch.rand(24, 5, generator=torch.manual_seed(3)) < 0.4).float()
NOISY[:4, 2], NOISY[4:8, 2], NOISY[:, 0] = 1.0, 0.0, NOISY[:, 0].where(NOISY.sum(1) > 0, torch.tensor(1.0))


@pytest.mark.parametrize("arity", [2, 5])
def test_any_tree_has_the_optimum_of_bce(arity: int) -> None:
    """Where each row can be told by itself, that are the frequencies of its labels."""
    head = PLTHead(4, tree_of(5, arity), sparse=False)
    layer = torch.nn.Linear(4, 5)
    for module, loss in (
        (head, lambda: head(ONE_HOT, NOISY).loss),
        (layer, lambda: torch.nn.functional.binary_cross_entropy_with_logits(layer(ONE_HOT), NOISY)),
    ):
        optimizer = torch.optim.LBFGS(module.parameters(), max_iter=300, line_search_fn="strong_wolfe")

        def closure(optimizer: Any = optimizer, loss: Any = loss) -> Any:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        optimizer.step(closure)
    frequencies = torch.stack([NOISY[ONE_HOT[:, column] > 0].mean(dim=0) for column in range(4)])
    found = head.log_prob(torch.eye(4)).exp().detach()
    torch.testing.assert_close(found, torch.sigmoid(layer(torch.eye(4))).detach(), rtol=0, atol=2e-3)
    torch.testing.assert_close(found, frequencies, rtol=0, atol=2e-3)


@pytest.mark.parametrize("link", HEADS)
@pytest.mark.parametrize("optimizer", ["SparseAdam", "Adagrad", "SGD"])
def test_sparse_steps_touch_the_visited_nodes_only_and_learn(optimizer: str, link: str) -> None:
    head = HEADS[link](DIM, tree_of(64, 4))
    how = torch.optim.__dict__[optimizer](list(head.parameters()), lr=0.1)
    h, y = torch.randn(2, DIM), [[0], [0]]
    first = head(h, y).loss.item()
    for _ in range(5):
        how.zero_grad()
        out = head(h, y)
        out.loss.backward()
        how.step()
    assert out.loss.item() < first
    touched = torch.nonzero(head.weight.abs().sum(dim=1)).flatten()
    path = reference.positive_nodes(head.tree, {0})
    assert set(touched.tolist()) <= path | reference.negative_nodes(head.tree, path)
    assert out.n_pairs == 2 * (3 * 4 + (link == "plt"))


def forms(labels: list[list[int]], n_labels: int) -> dict[str, Any]:
    indptr = np.cumsum([0, *map(len, labels)])
    indices = np.array([label for row in labels for label in row])
    dense = np.zeros((len(labels), n_labels), np.int64)
    for row, of_row in enumerate(labels):
        dense[row, of_row] = 1
    return {
        "pair": (indptr, indices),
        "tensors": (torch.from_numpy(indptr), torch.from_numpy(indices)),
        "sparse": csr_matrix(dense),
        "array": dense,
        "dense tensor": torch.from_numpy(dense),
        "sparse tensor": torch.from_numpy(dense).to_sparse(),
        "tuples": tuple(tuple(row) for row in labels),
        "sets": [set(row) for row in labels],
        "row tensors": [torch.tensor(row, dtype=torch.int64) for row in labels],
    }


def test_labels_come_in_many_forms() -> None:
    labels = [[1, 5], [], [0], [3, 4, 7], [2, 2]]
    head = PLTHead(DIM, tree_of(8, 2))
    fill(head, 2)
    h = torch.randn(len(labels), DIM)
    expected = head(h, labels).losses
    for name, form in forms(labels, 8).items():
        assert torch.equal(head(h, form).losses, expected), name
    one_each = torch.tensor([3, 1, 0, 7, 7])
    assert torch.equal(head(h, one_each).losses, head(h, one_each[:, None].tolist()).losses)


BAD_LABELS: dict[str, tuple[Any, str]] = {
    "too large": ([[0], [8]], r"row 1: there is no label 8.* 0 to 7"),
    "negative": ([[0], [-1]], "row 1: there is no label -1"),
    "a name": ([["a"], [1]], "row 0: must be a list of label ids"),
    "a number": (3, "lists of label ids"),
    "too few rows": ([[1]], "h has 2 rows, but y has 1"),
    "another width": (np.zeros((2, 5)), "y has 5 columns, but the tree has 8 labels"),
    "half a label": (torch.tensor([0.5, 1.0]), "one id per row"),
    "ragged": ([[[1], [2, 3]], [1]], "row 0"),
    "pointers that fall": ((np.array([0, 2, 1]), np.array([1])), "indptr must rise"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_are_named(case: str) -> None:
    y, words = BAD_LABELS[case]
    with pytest.raises(DataError, match=words):
        PLTHead(DIM, tree_of(8, 2))(torch.randn(2, DIM), y)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match=r"in_features must be .* 0"):
        PLTHead(0, build_flat(3))
    with pytest.raises(ParameterError, match="tree must be a LabelTree"):
        PLTHead(3, "kmeans")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="first_bias must be 4 numbers"):
        PLTHead(3, build_flat(3), [0.0])
    with pytest.raises(ParameterError, match="no alternative is certain"):
        HSMHead(3, build_flat(3), [0.0, np.inf, 0.0, 0.0])
    head = PLTHead(3, build_flat(3))
    with pytest.raises(DataError, match=r"h must have shape \(n_rows, 3\), but has \(2, 4\)"):
        head(torch.randn(2, 4), [[0], [1]])
    with pytest.raises(DataError, match="no finite numbers"):
        head.predict(torch.full((1, 3), torch.nan))
    with pytest.raises(ParameterError, match="k must"):
        head.predict(torch.zeros(1, 3), k=0)


def test_a_head_that_has_diverged_says_so() -> None:
    head = PLTHead(3, build_flat(3))
    with torch.no_grad():
        head.weight[1, 1] = torch.nan
    with pytest.raises(DataError, match="diverged"):
        head.predict(torch.zeros(1, 3))


@pytest.mark.parametrize("link", HEADS)
def test_its_state_is_saved_and_loaded_and_is_of_its_tree(link: str) -> None:
    head = HEADS[link].build(NOISY, in_features=DIM, arity=2, max_leaves=2)
    fill(head, 4)
    h = torch.randn(3, DIM)
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    again = HEADS[link].from_state_dict(state)
    assert again.tree == head.tree
    assert torch.equal(again.log_prob(h), head.log_prob(h))
    other = HEADS[link](DIM, head.tree)
    other.load_state_dict(state)
    assert torch.equal(other(h, [[0], [1], [2]]).losses, head(h, [[0], [1], [2]]).losses)
    with pytest.raises(DataError, match="another tree"):
        HEADS[link](DIM, relabelled(head.tree)).load_state_dict(state)
    assert torch.equal(copy.deepcopy(head).log_prob(h), head.log_prob(h))


def relabelled(tree: LabelTree) -> LabelTree:
    return LabelTree(tree.parent, np.where(tree.label >= 0, (tree.label + 1) % tree.n_labels, -1))


def test_other_precisions_and_no_warnings() -> None:
    head = PLTHead(DIM, tree_of(8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = head(torch.randn(2, DIM).bfloat16(), [[1], [2]]).loss  # as of an encoder under autocast
        loss.backward()
        with torch.no_grad():
            head(torch.randn(2, DIM), [[1], []])
        assert head(torch.randn(0, DIM), []).loss == 0.0


@pytest.mark.parametrize("link", HEADS)
def test_a_built_head_begins_with_the_frequencies(link: str) -> None:
    Y = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 1, 0, 0]])
    head = HEADS[link].build(Y, in_features=DIM, arity=2, max_leaves=2)
    share = Y / Y.sum(axis=1, keepdims=True) if link == "hsm" else Y
    found = head.log_prob(torch.randn(2, DIM)).exp().detach()
    np.testing.assert_allclose(found, np.broadcast_to(share.mean(axis=0), (2, 5)), rtol=1e-5)
    assert np.isfinite(head(torch.randn(4, DIM), Y).loss.item())


def test_trees_are_built_from_what_is_given() -> None:
    texts = [f"word{i % 6} word{i % 2}" for i in range(60)]
    labels = [[i % 6] for i in range(60)]
    by_text = PLTHead.build(labels, texts, in_features=3, arity=2, max_leaves=3)
    halves = [{int(by_text.tree.label[c]) for c in reference.children_of(by_text.tree, n)} for n in (1, 2)]
    assert sorted(map(sorted, halves)) == [[0, 2, 4], [1, 3, 5]]
    assert PLTHead.build(labels, in_features=3, tree="flat").tree.n_nodes == 7
    assert PLTHead.build(labels, in_features=3, tree="huffman", arity=2).tree.n_children.max() == 2
    vectors = np.eye(6, dtype=np.float32)[[i % 6 for i in range(60)]]
    assert PLTHead.build(labels, vectors, in_features=3, n_labels=9).tree.n_labels == 9
    with pytest.raises(DataError, match="X has 59 rows, but Y has 60"):
        PLTHead.build(labels, texts[1:], in_features=3)
    with pytest.raises(DataError, match="no labels"):
        PLTHead.build([[], []], in_features=3)
    with pytest.raises(ParameterError, match="airty"):
        PLTHead.build(labels, in_features=3, airty=2)

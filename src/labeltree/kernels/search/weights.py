"""What sparse nodes weigh the features of a row by: for explanations, which are about words."""

from __future__ import annotations

import numpy as np

from labeltree.kernels.jit import kernel
from labeltree.kernels.search.sparse import nodes_at
from labeltree.kernels.sparse.chunk import bucket_of


@kernel
def gather_weights(table, indices, values, first, count, out_weights):
    """Fill the weights of the nodes ``first[r] .. first[r] + count[r] - 1`` for the features of a row.

    ``out_weights`` is (sum of count, n_features), one range after another, of siblings each. As
    :func:`labeltree.reference.sparse.decode` gives them.
    """
    nodes = nodes_at(table, indices, values)
    chunk_bucket, bucket, chunk_row, feature, length, chunk_entry, entry, scale, _, _ = nodes.parameters
    out_weights[:] = 0.0
    base = 0
    for r in range(len(first)):
        start, n = first[r], count[r]
        for chunk in range(nodes.chunk[start], nodes.chunk[start + n - 1] + 1):
            first_bucket, first_row = chunk_bucket[chunk], chunk_row[chunk]
            n_buckets = chunk_bucket[chunk + 1] - first_bucket - 1
            before = start - nodes.chunk_node[chunk]  # children of the chunk that are not asked for
            if n_buckets < 1:
                continue
            for q in range(len(indices)):
                b = first_bucket + bucket_of(indices[q], n_buckets)
                row, stop = first_row + bucket[b, 0], first_row + bucket[b + 1, 0]
                e = chunk_entry[chunk] + bucket[b, 1]
                while row < stop and feature[row] != indices[q]:
                    e += length[row]
                    row += 1
                if row == stop:
                    continue
                for place in range(e, e + length[row]):
                    c = np.int64(entry[place] >> 8) - before
                    if 0 <= c < n:
                        byte = np.float32(np.int32(entry[place] & 255) - 128)
                        out_weights[base + c, q] = byte * scale[start + c]
        base += n

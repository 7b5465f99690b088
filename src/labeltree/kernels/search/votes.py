"""What several experts say that list all their labels, in one list."""

from __future__ import annotations

from labeltree.kernels.jit import kernel


@kernel
def add_votes(indptr, ids, votes, more_indptr, more_ids, more_votes, out_indptr, out_ids, out_votes):
    """The votes of each row, sorted by label, and those of another list, added up.

    ``out_ids`` and ``out_votes`` have room for both; returns how many there are.
    """
    n = 0
    for i in range(len(indptr) - 1):
        place, end = indptr[i], indptr[i + 1]
        other, other_end = more_indptr[i], more_indptr[i + 1]
        while place < end or other < other_end:
            takes_first = place < end and (other == other_end or ids[place] <= more_ids[other])
            takes_other = other < other_end and (place == end or more_ids[other] <= ids[place])
            out_ids[n] = ids[place] if takes_first else more_ids[other]
            out_votes[n] = (votes[place] if takes_first else 0.0) + (
                more_votes[other] if takes_other else 0.0
            )
            n += 1
            place += takes_first
            other += takes_other
        out_indptr[i + 1] = n
    return n

// How good suggestions are where a file has labels: the same numbers as `labeltree test --scorecard`.

const BINS = 10;
const LISTED = 20;
const LEAST_ROWS = 3;
const K = 5;

// A rule says how many labels there are: then it is measured by these, not by the first few.
export function scorecard(documents, results, rule = null) {
  const bins = Array.from({ length: BINS }, () => ({ n: 0, total: 0, right: 0 }));
  const labels = new Map(); // label: pairs of a probability and whether it is right, and rows that have it
  const of = (label) => labels.get(label) ?? labels.set(label, { pairs: [], rows: 0 }).get(label);
  const hits = { 1: 0, 3: 0, 5: 0 };
  let recall = 0;
  const sets = { given: 0, right: 0, true: 0 };
  let n = 0;
  documents.forEach((document, place) => {
    if (!document.labels) return;
    n += 1;
    const truth = new Set(document.labels);
    for (const label of truth) of(label).rows += 1;
    let found = 0;
    results[place].labels.slice(0, rule === null ? K : undefined).forEach(({ label, probability }, rank) => {
      const isRight = truth.has(label);
      of(label).pairs.push([probability, isRight]);
      const bin = bins[Math.min(BINS - 1, Math.floor(probability * BINS))];
      bin.n += 1;
      bin.total += probability;
      bin.right += isRight;
      found += isRight;
      for (const k of [1, 3, 5]) if (isRight && rank < k) hits[k] += 1;
    });
    sets.given += results[place].labels.length;
    sets.right += found;
    sets.true += truth.size;
    recall += truth.size ? found / truth.size : 0;
  });
  if (!n) return null;
  const judged = [...labels].filter(([, { rows }]) => rows >= LEAST_ROWS).map(([label, { pairs, rows }]) => ({ label, rows, f1: bestF1(pairs, rows) }));
  const best = [...judged].sort((one, other) => other.f1 - one.f1 || other.rows - one.rows).slice(0, Math.min(LISTED, Math.ceil(judged.length / 2)));
  const worst = [...judged].sort((one, other) => one.f1 - other.f1 || other.rows - one.rows);
  return {
    rows: n,
    k: K,
    rule,
    measures: rule === null ? { "p@1": hits[1] / n, "p@3": hits[3] / (3 * n), "p@5": hits[5] / (5 * n), "r@5": recall / n } : ofSets(sets),
    calibration: bins.filter((bin) => bin.n).map((bin) => ({ n: bin.n, probability: bin.total / bin.n, right: bin.right / bin.n })),
    labels_judged: judged.length,
    least_rows: LEAST_ROWS,
    best,
    worst: worst.filter((label) => !best.includes(label)).slice(0, LISTED),
  };
}

function ofSets(sets) {
  const share = (part, whole) => (whole ? part / whole : 0);
  return { "micro-precision": share(sets.right, sets.given), "micro-recall": share(sets.right, sets.true), "micro-f1": share(2 * sets.right, sets.given + sets.true) };
}

// That any threshold reaches.
function bestF1(pairs, rows) {
  pairs.sort((one, other) => other[0] - one[0]);
  let best = 0;
  let right = 0;
  pairs.forEach(([probability, isRight], place) => {
    right += isRight;
    const isEnd = pairs[place + 1]?.[0] !== probability;
    if (isEnd) best = Math.max(best, (2 * right) / (place + 1 + rows));
  });
  return best;
}

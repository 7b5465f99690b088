"""XML-CNN and Kim-CNN of the paper's Table 1, with a sigmoid for each label or with a label tree as output.

    python -m experiments.xml_cnn [--data cooking-stackexchange,debian-debtags] [--systems 'Kim-CNN+plt;...']
                                  [--seeds 1] [--vectors FILE] [--minutes 10] [--output FOLDER] [--quick]

Needs torch (pip install 'labeltree[torch]'). Word vectors are random, or those of a text file with a word and
its numbers on each line. One row in ten, ten neighbours at a time, is held out of the training rows to decide
after which epoch to stop, and which of three steps to take; nothing else is tuned. A run ends with the epoch
in which it has used so many minutes of CPU. Every run is kept in FOLDER/xml_cnn.jsonl: started again, only
missing ones are run.
"""

from __future__ import annotations

import copy
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.ledger import Ledger, Record, run_missing
from experiments.sets import Defaults, Files, add_set_options, chosen_sets, run_sets
from experiments.writing import command_of, output_folder, parser_of, write_csv
from labeltree.data.rows import LabelRows, pointers
from labeltree.metrics import evaluate

if TYPE_CHECKING:
    from experiments.xml_cnn_networks import Network, Settings

SETS = Defaults(
    data="cooking-stackexchange,debian-debtags", quick_data="dependent", seeds="1", quick_seeds="1"
)
K = 5
PREFIX = "__label__"
UNKNOWN = 1  # the id of words that are seen less than twice


class Rows(NamedTuple):
    """Texts as numbers of words, and the ids of their labels, -1 where a label is in no training row."""

    words: list[NDArray[np.int64]]
    labels: list[NDArray[np.int64]]

    def take(self, chosen: NDArray[np.int64]) -> Rows:
        return Rows([self.words[row] for row in chosen], [self.labels[row] for row in chosen])


class Data(NamedTuple):
    train: Rows
    held_out: Rows
    test: Rows
    texts: list[str]  # of the rows to train on, for the tree
    vocabulary: list[str]  # from id 2 on
    n_labels: int


def read_lines(path: Path) -> tuple[list[str], list[list[str]]]:
    """Texts and labels of fastText lines."""
    texts, labels = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.lower().split()
        texts.append(" ".join(word for word in words if not word.startswith(PREFIX)))
        labels.append([word for word in words if word.startswith(PREFIX)])
    return texts, labels


def read_data(train: Path, test: Path, length: int) -> Data:
    texts, labels = read_lines(train)
    rows = np.arange(len(texts))
    is_held_out = rows // 10 % 10 == 9
    names = list(dict.fromkeys(label for row in labels for label in row))
    counts = Counter(word for text in texts for word in text.split())
    vocabulary = [word for word, count in counts.items() if count > 1]
    number = {word: UNKNOWN + 1 + place for place, word in enumerate(vocabulary)}
    id_of = {name: place for place, name in enumerate(names)}

    def as_rows(some_texts: list[str], some_labels: list[list[str]]) -> Rows:
        words = [[number.get(word, UNKNOWN) for word in text.split()[:length]] for text in some_texts]
        ids = [[id_of.get(label, -1) for label in row] for row in some_labels]
        return Rows(*([np.array(row, np.int64) for row in part] for part in (words, ids)))

    known = as_rows(texts, labels)
    kept = rows[~is_held_out]
    return Data(
        known.take(kept), known.take(rows[is_held_out]), as_rows(*read_lines(test)),
        [texts[row] for row in kept], vocabulary, len(names),
    )  # fmt: skip


def word_vectors(vocabulary: Sequence[str], dim: int, path: Path | None) -> Any:
    """(2 + n_words, dim): of no word zeros, of others those of a file, random where it has none."""
    import torch

    given: dict[str, list[float]] = {}
    if path is not None:
        wanted = set(vocabulary)
        for line in path.read_text(encoding="utf-8").splitlines():
            word, *numbers = line.split()
            if word in wanted and len(numbers) > 1:  # a first line may have the sizes of the file
                given[word] = [float(number) for number in numbers]
        if not given or len(set(map(len, given.values()))) > 1:
            raise SystemExit(f"{path}: no vectors of one length for any word of the training rows")
        dim = len(next(iter(given.values())))
    vectors = 0.1 * torch.randn(2 + len(vocabulary), dim)
    vectors[0] = 0.0
    for place, word in enumerate(vocabulary, UNKNOWN + 1):
        if word in given:
            vectors[place] = torch.tensor(given[word])
    return vectors


def batches(
    rows: Rows, size: int, shortest: int, random: np.random.Generator | None = None
) -> Iterator[tuple[Any, list[NDArray[np.int64]], NDArray[np.int64]]]:
    """Words padded to the longest row, labels, numbers of rows; rows of similar lengths come together."""
    import torch

    lengths = np.array([len(words) for words in rows.words])
    noise = 0.0 if random is None else random.random(len(lengths)) * (1 + 0.2 * lengths)
    order = np.argsort(lengths + noise)
    parts = np.split(order, range(size, len(order), size))
    for place in range(len(parts)) if random is None else random.permutation(len(parts)):
        chosen = parts[place]
        words = np.zeros((len(chosen), max(shortest, int(lengths[chosen].max()))), np.int64)
        for number, row in enumerate(chosen):
            words[number, : lengths[row]] = rows.words[row]
        yield torch.from_numpy(words), [rows.labels[row] for row in chosen], chosen


def make_network(key: Mapping[str, Any], data: Data, settings: Settings, vectors: Path | None) -> Network:
    import torch

    from experiments.xml_cnn_networks import ENCODERS, FlatHead, Network, TreeHead
    from labeltree.torch import PLTHead

    torch.manual_seed(key["seed"])
    encoder = ENCODERS[key["encoder"]](word_vectors(data.vocabulary, settings.dim, vectors), settings)
    if key["output"] == "flat":
        return Network(encoder, FlatHead(encoder.out_features, data.n_labels))
    how = dict(in_features=encoder.out_features, n_labels=data.n_labels, seed=key["seed"], threads=1)
    return Network(encoder, TreeHead(PLTHead.build(data.train.labels, data.texts, **how)))


def train_epoch(network: Network, data: Data, optimizers: list[Any], random: np.random.Generator) -> float:
    """One pass over the training rows; their mean loss."""
    settings = network.encoder.settings
    network.train()
    total = 0.0
    for words, labels, _ in batches(data.train, settings.batch, network.encoder.shortest, random):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = network.output.loss(network.encoder(words), labels)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item() * len(labels)
    return total / len(data.train.labels)


def judge(network: Network, rows: Rows, n_labels: int) -> dict[str, float]:
    """P@k in percent."""
    import torch

    network.eval()
    ids = np.empty((len(rows.labels), K), np.int32)
    with torch.no_grad():
        for words, _, chosen in batches(rows, 256, network.encoder.shortest):
            ids[chosen] = network.output.best(network.encoder(words), K)
    indices = np.concatenate([np.empty(0, np.int64), *map(np.sort, rows.labels)]).astype(np.int32)
    truth = LabelRows(pointers([len(labels) for labels in rows.labels]), indices, n_labels)
    return {name: 100 * value for name, value in evaluate(ids, truth, (1, 3, 5)).items() if name in NAMES}


NAMES = ("p@1", "p@3", "p@5")


def choose_rate(make: Callable[[], Network], data: Data, settings: Settings) -> float:
    """The step with which held-out rows are predicted best after a few passes."""
    some = np.arange(min(settings.trial_rows, len(data.train.labels)))
    few, found = data._replace(train=data.train.take(some)), []
    for rate in settings.rates:
        network, random = make(), np.random.default_rng(0)
        optimizers = network.optimizers(rate)
        for _ in range(settings.trial_epochs):
            train_epoch(network, few, optimizers, random)
        found.append(sum(judge(network, data.held_out, data.n_labels).values()))
    return settings.rates[int(np.argmax(found))]


def measure(
    key: Mapping[str, Any], files: tuple[Path, Path], settings: Settings, threads: int, vectors: Path | None
) -> Record:
    """Train until held-out rows are predicted no better, take the best epoch, and look at the test rows."""
    import torch

    torch.set_num_threads(threads)
    data = read_data(*files, settings.length)
    began = time.process_time()
    make = functools.partial(make_network, key, data, settings, vectors)
    rate, network = choose_rate(make, data, settings), make()
    optimizers, random = network.optimizers(rate), np.random.default_rng(key["seed"])
    best, best_epoch, state, epoch, loss = -1.0, 0, network.state_dict(), 0, float("nan")
    while epoch < settings.epochs and epoch - best_epoch < settings.patience:
        loss, epoch = train_epoch(network, data, optimizers, random), epoch + 1
        found = sum(judge(network, data.held_out, data.n_labels).values())
        if found > best:
            best, best_epoch, state = found, epoch, copy.deepcopy(network.state_dict())
        if time.process_time() - began > 60 * key["minutes"]:
            break
    cpu_seconds = time.process_time() - began
    network.load_state_dict(state)
    held_out, start = judge(network, data.held_out, data.n_labels), time.process_time()
    test = judge(network, data.test, data.n_labels)
    seconds = time.process_time() - start
    return {
        **{name: round(value, 4) for name, value in test.items()},
        **{f"held-out {name}": round(value, 4) for name, value in held_out.items()},
        "train_cpu_seconds": round(cpu_seconds, 1),
        "test_us_per_row": round(1e6 * seconds / len(data.test.labels), 1),
        "epochs": epoch, "best_epoch": best_epoch, "loss": round(loss, 4), "rate": rate,
        "n_parameters": sum(parameter.numel() for parameter in network.parameters()),
        "n_train": len(data.train.labels), "n_test": len(data.test.labels), "n_labels": data.n_labels,
    }  # fmt: skip


def choose(names: str | None) -> list[tuple[str, str]]:
    """Encoders and outputs: all, or those of a list separated by semicolons."""
    from experiments.xml_cnn_networks import ENCODERS, OUTPUTS

    known = {f"{encoder}+{output}": (encoder, output) for encoder in ENCODERS for output in OUTPUTS}
    for name in names.split(";") if names else ():
        if name not in known:
            raise SystemExit(f"unknown system {name!r}; known are {'; '.join(known)}")
    return [known[name] for name in names.split(";")] if names else list(known.values())


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__ or "")
    add_set_options(parser, SETS)
    parser.add_argument("--systems", help="ENCODER+OUTPUT, separated by semicolons; default: all")
    parser.add_argument("--vectors", type=Path, help="a text file of word vectors; default: random ones")
    parser.add_argument("--minutes", type=float, help="of CPU, after which a run ends; default: 10")
    options = parser.parse_args(argv)
    try:
        from experiments.xml_cnn_networks import Settings
    except ImportError as error:
        raise SystemExit(str(error)) from None
    from experiments.hsm_vs_plt import generated_files
    from experiments.xml_cnn_page import write

    folder, (names, seeds), systems = (
        output_folder(options),
        chosen_sets(options, SETS),
        choose(options.systems),
    )
    small = (
        dict(dim=16, length=20, maps=16, hidden=32, kim_maps=16, epochs=3, trial_epochs=1)
        if options.quick
        else {}
    )
    settings, ledger = Settings(**small), Ledger(folder / "xml_cnn.jsonl")
    about = dict(settings._asdict(), vectors=options.vectors and options.vectors.name)

    def run(name: str, files: Files, scratch: Path) -> list[Record]:
        keys = [
            dict(
                data=name, encoder=encoder, output=output, seed=seed, minutes=options.minutes or 10.0, **about
            )
            for encoder, output in systems
            for seed in seeds
        ]
        how = settings, options.threads, options.vectors
        return run_missing(ledger, keys, lambda key: measure(key, files(name), *how), name)

    found = run_sets(names, generated_files if options.quick else None, run)
    write_csv(folder / "xml_cnn.csv", [record for records in found.values() for record in records])
    print(
        write(folder, found, command_of("xml_cnn", options, "data", "systems", "seeds", "vectors", "minutes"))
    )


if __name__ == "__main__":
    main()

"""Models for the page: a kitchen that was made up, and one of 10^5 labels of made-up words."""

from __future__ import annotations

import functools
import json
import random

import labeltree
from labeltree.model import Model

# What a topic's texts are about: its own words, a tool, and the group that it belongs to.
TOPICS = {
    "bread": ("flour yeast dough knead loaf crust proof sourdough starter rise", "oven", "baking"),
    "cake": ("sugar icing sponge layer butter batter frosting tin cream vanilla", "oven", "baking"),
    "pastry": ("shortcrust puff fold chill butter tart lattice rolling pin", "oven", "baking"),
    "soup": ("broth ladle simmer stock bowl strain puree thick", "pot", "stove"),
    "stew": ("braise tender simmer beef root slow casserole thick", "pot", "stove"),
    "sauce": ("reduce whisk thicken roux pan season glaze thick", "pan", "stove"),
    "tea": ("leaf cup kettle steep pour infuse green black", "kettle", "drinks"),
    "coffee": ("beans grind espresso roast filter crema brew cup", "kettle", "drinks"),
    "cocoa": ("chocolate milk whisk cup sweet winter marshmallow", "pot", "drinks"),
    "knives": ("sharpen blade edge whetstone chef hone steel grip", "board", "equipment"),
    "storage": ("freeze fridge keep fresh jar airtight shelf days", "box", "equipment"),
    "eggs": ("yolk white poach boil whisk scramble omelette shell", "pan", "breakfast"),
    "pancakes": ("batter flip griddle syrup fluffy stack milk", "pan", "breakfast"),
    "porridge": ("oats simmer milk stir bowl honey thick", "pot", "breakfast"),
}
_FILLING = "how do I can my the a for best way to make with when why does it not after before"
_ONSETS, _VOWELS = "b c d f g h k l m n p r s t v br tr st pl gr", "a e i o u ai ou"
_FORGOTTEN = 0.15  # of labels: people forget some, so that no model can be sure


def kitchen_texts(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    chance = random.Random(seed)
    texts, labels = [], []
    for _ in range(n):
        words, named = chance.choices(_FILLING.split(), k=6), set[str]()
        for topic in chance.sample(list(TOPICS), 1 + (chance.random() < 0.4)):
            own, tool, group = TOPICS[topic]
            words += chance.sample(own.split(), chance.choice((2, 3, 4))) + [tool] * (chance.random() < 0.5)
            words += [topic] * (chance.random() < 0.2)
            named |= {name for name in (topic, group) if chance.random() > _FORGOTTEN}
        chance.shuffle(words)
        texts.append(" ".join(words))
        labels.append(sorted(named))
    return texts, labels


@functools.cache
def kitchen() -> Model:
    """Calibrated, with a tree of several levels and neighbours."""
    card = {"language": "en", "source": "notes from a kitchen that was made up"}
    return labeltree.train(*kitchen_texts(3000, 1), arity=3, max_leaves=3, threads=1, card=card)


def kitchen_lines(n: int, seed: int = 2) -> str:
    """JSON lines to test it with."""
    rows = zip(*kitchen_texts(n, seed), strict=True)
    return "".join(json.dumps({"text": text, "labels": named}) + "\n" for text, named in rows)


@functools.cache
def large_model(n_labels: int = 100_000) -> Model:
    """A label has three words, and two thirds of them are in its text."""
    texts, labels = large_texts(n_labels)
    return labeltree.train(texts, labels, preset="fast", threads=1)


def large_texts(n_labels: int) -> tuple[list[str], list[list[str]]]:
    chance = random.Random(1)
    words = _made_up_words(6000, chance)
    names = [
        f"{words[i % 1000]} {words[1000 + i // 1000 * 7 % 2000]} {words[3000 + i * 31 % 3000]}"
        for i in range(n_labels)
    ]
    texts, labels = [], []
    for name in names:
        texts.append(" ".join([*name.split(), *chance.choices(words, k=4)]))
        frequent = names[int(n_labels * chance.random() ** 3)]
        labels.append([name] if chance.random() < 0.5 or frequent == name else [name, frequent])
    return texts, labels


def _made_up_words(n: int, chance: random.Random) -> list[str]:
    onsets, vowels = _ONSETS.split(), _VOWELS.split()
    words: dict[str, None] = {}
    while len(words) < n:
        n_syllables = chance.choice((2, 2, 3))
        words["".join(chance.choice(onsets) + chance.choice(vowels) for _ in range(n_syllables))] = None
    return list(words)


@functools.cache
def tuned_kitchen() -> Model:
    """Three trees and a rule."""
    model = labeltree.train(*kitchen_texts(1500, 3), preset="fast", trees=3, max_leaves=4, threads=1)
    model.rule = model.tune(*kitchen_texts(600, 4), measure="micro-f1", threads=1).rule
    return model


HOSTILE = [
    '<img src=x onerror="window.hacked=1">',
    '"><script>window.hacked=1</script>',
    "javascript:window.hacked=1",
    "</title><svg onload=window.hacked=1>",
    "a" * 300,
    "שלום \u202e txet desrever",
]


@functools.cache
def hostile_model() -> Model:
    """Labels that want to be markup."""
    texts = [f"{' '.join(['word', f'w{i % 6}'] * 2)} x{i}" for i in range(120)]
    return labeltree.train(texts, [[HOSTILE[i % 6]] for i in range(120)], arity=2, max_leaves=2, threads=1)

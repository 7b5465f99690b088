"""What characters are to words: frozen, and what Unicode says of them."""

from __future__ import annotations

import unicodedata
import zlib

from labeltree.features.characters import UNICODE, kinds_for_words
from labeltree.kernels.text.words import IN_WORDS, NOT_IN_WORDS, UNSPACED


def test_words_are_made_of_letters_marks_and_digits() -> None:
    kinds = kinds_for_words()
    # Of characters that are assigned in both versions: no Python disagrees about those.
    old = unicodedata.ucd_3_2_0
    is_newer = tuple(map(int, unicodedata.unidata_version.split("."))) > tuple(map(int, UNICODE.split(".")))
    known = [
        code
        for code in range(len(kinds))
        if (old if is_newer else unicodedata).category(chr(code)) not in ("Cn", "Cs")
    ]
    expected = [unicodedata.category(chr(code))[0] in "LMN" for code in known]
    assert (kinds[known] != NOT_IN_WORDS).tolist() == expected


def test_the_table_is_frozen() -> None:
    """Saved models depend on it: another table would be another value of the parameter ``tokens``."""
    assert zlib.crc32(kinds_for_words().tobytes()) == 0x8135BF64


def test_scripts_without_spaces() -> None:
    kinds = kinds_for_words()
    unspaced, spaced, others = "漢字かなカナー々ไทยລາວမြန်ខ្មែរ𠮷", "aZ0éßжעعह한٣", "-_'. ,:、。「」・฿🙂\u00ad"
    assert {kinds[ord(c)] for c in unspaced} == {UNSPACED}
    assert {kinds[ord(c)] for c in spaced} == {IN_WORDS}
    assert {kinds[ord(c)] for c in others} == {NOT_IN_WORDS}

"""Bearer tokens: who may ask."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from labeltree.errors import ParameterError
from labeltree.serve.problems import Problem

_LEAST = 16  # characters: a shorter one can be guessed


class Tokens:
    """Digests of tokens; without any, everybody may ask."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._digests = [_digest(_checked(token)) for token in tokens]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, authorization: str) -> None:
        """Whether a header has one of the tokens, in a time that does not tell how much of it is right."""
        if not self._digests:
            return
        scheme, _, token = authorization.partition(" ")
        digest = _digest(token.strip())
        is_known = [hmac.compare_digest(digest, known) for known in self._digests]
        if scheme.lower() != "bearer" or not any(is_known):
            detail = "this needs a token of the service; send the header Authorization: Bearer TOKEN"
            raise Problem(401, detail, {"WWW-Authenticate": "Bearer"})


def read_tokens(path: Path) -> Tokens:
    """One per line; empty lines and those that begin with # are left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ParameterError(
            f"token file {path}: cannot be read ({error.strerror}); write one token per line, "
            "or leave --token-file out"
        ) from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path}: is no text in UTF-8; write one token per line") from error
    tokens = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not tokens:
        raise ParameterError(f"{path}: has no token; write one per line, or leave --token-file out")
    return Tokens(tokens)


def _checked(token: str) -> str:
    if len(token) < _LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise ParameterError(
            f"a token must have at least {_LEAST} characters of ASCII without blanks; "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()

"""Label trees as output layers of networks: :class:`PLTHead` and :class:`HSMHead`.

The only part that needs torch, and one that nothing else imports. Start at :mod:`labeltree.torch.heads`.
"""

from __future__ import annotations

try:
    import torch.nn as _nn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "labeltree.torch needs PyTorch, which is not installed: pip install 'labeltree[torch]'"
    ) from error

from labeltree.torch.heads import HeadOutput, HSMHead, PLTHead

__all__ = ["HSMHead", "HeadOutput", "PLTHead"]

"""How many shards: placeholder rule."""

from __future__ import annotations

from cutsvm.risk import Risk


def choose_shards(risk: Risk) -> int:
    return 1

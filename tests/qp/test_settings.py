"""The settings of the interior-point method, in Python and compiled."""

from __future__ import annotations

from dataclasses import fields

from cutsvm.qp.settings import InteriorPointSettings, compiled_settings


def test_compiled_settings_have_the_same_values_and_are_built_once():
    settings = InteriorPointSettings(max_steps=7, backtracking=0.5)
    compiled = compiled_settings(settings)
    assert compiled_settings(InteriorPointSettings(max_steps=7, backtracking=0.5)) is compiled
    names = {name for name in dir(compiled) if not name.startswith("_")}
    assert names | {"lapack_rows", "failed_gap"} == {field.name for field in fields(settings)}
    for name in names:
        assert getattr(compiled, name) == getattr(settings, name), name

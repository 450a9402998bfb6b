"""Every kernel in src/core states what it requires or ensures."""

import re

from tests.support import ROOT

# Characters, registers and signals: not kernels.
WITHOUT = {"lanes", "svmlight_text", "mapped_files", "interrupt", "parallel", "view", "rows"}
# A function of the namespace, of more than one line, after its comment.
FUNCTION = re.compile(
    r"^(?P<comment>(?://[^\n]*\n)*)(?:template <[^\n]*>\n)?(?P<head>[a-zA-Z][^\n;=(]*\([^;{]*\{\n)", re.MULTILINE
)


def test_kernels_have_contracts():
    found, missing = 0, []
    for path in sorted((ROOT / "src" / "core").glob("*.hpp")):
        if path.stem in WITHOUT:
            continue
        for match in FUNCTION.finditer(path.read_text()):
            head = match["head"].split("(")[0]
            if re.search(r"\b(struct|class|namespace)\b", head):
                continue
            found += 1
            if not re.search(r"requires|ensures", match["comment"]):
                missing.append(f"{path.name}: {head}")
    assert found > 60
    assert not missing

"""The runs of each page, one after the other as a reader does: some take up what others have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.docs.typing_it import BLOCKS, places, run


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("page", [*dict.fromkeys(place.rpartition(":")[0] for place in places("run"))])
def test_runs_end_as_the_page_says(page: str, project: Path) -> None:
    run([BLOCKS[place] for place in places("run") if place.startswith(f"{page}:")], project)

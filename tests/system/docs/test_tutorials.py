"""The runs of the tutorials, one after the other as a reader does: some take up what others have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.docs.typing_it import BLOCKS, places, run


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("place", places("run"))
def test_a_run_ends_as_the_page_says(place: str, project: Path) -> None:
    run(BLOCKS[place], project)

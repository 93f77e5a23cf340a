"""Every command on the pages is run by a test, or says why none can."""

from __future__ import annotations

import re

import pytest

from docs.parts import marks
from tests.pages import all_blocks
from tests.paths import ROOT

BLOCKS = all_blocks()
VERB = re.compile(r"\./invokew ([a-z.]+)")
KNOWN = {"": "", "run": "long"}  # marks with words of ours; all others have somebody's


@pytest.mark.parametrize("place", [place for place, block in BLOCKS.items() if block.mark == "run by"])
def test_the_tests_that_are_named_run_these_verbs(place: str) -> None:
    block = BLOCKS[place]
    files = [ROOT / name for name in block.words.split(", ")]
    assert [str(file) for file in files if not file.is_file()] == []
    assert [file for file in files if file.relative_to(ROOT).parts[0] not in ("tests", ".ci")] == []
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    verbs = set(VERB.findall(block.text))
    assert {verb for verb in verbs if not re.search(rf"(?<![\w-]){re.escape(verb)}(?![\w-])", text)} == set()


def test_marks_are_known_and_reasons_are_given() -> None:
    for place, block in BLOCKS.items():
        assert KNOWN.get(block.mark, block.words) == block.words, place
        assert block.mark != "not run" or len(block.words.split()) >= 3, place


def test_marks_are_of_blocks() -> None:
    """One before anything else would be of nothing, and seem to be of what follows."""
    written = re.compile(r"^ *<!-- (run by|run|not run):", re.MULTILINE)
    for page in {place.rpartition(":")[0] for place in BLOCKS}:
        text = (ROOT / page).read_text(encoding="utf-8")
        own = [block for block in marks.blocks(marks.ALL.sub("", text)) if block.mark]
        assert len(written.findall(text)) == len(own), page


PAGE = """# A page

<!-- run: long -->
```console
$ first --option \\
    value
printed
$ second 'of two
lines'
```

```console
only printed
```

* in a list

  <!-- not run: for this reason -->

  ```sh
  third
  ```

<!-- file: some.yaml -->
```yaml
some: text
```
"""


def test_a_page_is_read() -> None:
    console, shell = marks.blocks(PAGE)
    assert (console.line, console.mark, console.words) == (5, "run", "long")
    assert list(console.commands()) == [
        ("first --option \\\n    value\n", "printed\n"),
        ("second 'of two\nlines'\n", ""),
    ]
    assert list(shell.commands()) == [("third\n", "")]
    assert marks.files(PAGE) == {"some.yaml": "some: text\n"}


def test_one_mark_may_be_of_all_blocks_but_those_with_one_of_their_own() -> None:
    page = "<!-- all not run: no network here -->\n" + PAGE.replace("<!-- not run: for this reason -->", "")
    assert [block.mark for block in marks.blocks(page)] == ["run", "not run"]


def test_readers_see_of_which_commands_nobody_knows_that_they_work() -> None:
    assert '<p class="not-run">No test runs this: it takes a day.</p>' in marks.explained(
        "<!-- not run: it takes a day -->\n```sh\nthird\n```\n"
    )


def test_places_are_filled_and_unknown_ones_named() -> None:
    page = "a\n\n<!-- here: figure one two -->\n"
    assert marks.filled(page, {"figure": lambda *words: "-".join(words)}) == "a\n\none-two\n"
    with pytest.raises(LookupError, match="here: figure"):
        marks.filled(page, {})

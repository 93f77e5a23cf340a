"""What is written is OpenMetrics, by the parser of the people who wrote the format's first one."""

from __future__ import annotations

from concorde.openmetrics import COUNTER, GAUGE, Family, labelled, text
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
help_words = words.filter(lambda text: text == text.strip())  # the parser cuts off what is around a help text


@given(help_words, words, st.integers(0, 2**64 - 1))
def test_any_text_and_number_comes_out_as_it_went_in(says: str, value: str, number: int) -> None:
    family = Family("one_bytes", COUNTER, says)
    family.add(labelled((("who", value),)), number)
    (found,) = parsed(text([family]))
    (sample,) = found.samples
    assert (found.name, found.type, found.documentation) == ("one_bytes", "counter", says)
    assert (sample.name, sample.labels, sample.value) == ("one_bytes_total", {"who": value}, number)


def test_a_family_without_samples_is_left_out() -> None:
    assert text([Family("empty", GAUGE, "Nothing.")]) == "# EOF\n"


def test_an_empty_label_is_left_out() -> None:
    assert labelled((("a", ""), ("b", "c"))) == '{b="c"}'
    assert labelled((("a", ""),)) == ""

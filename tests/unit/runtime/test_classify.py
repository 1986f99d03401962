# SPDX-License-Identifier: Apache-2.0
"""Which class a request belongs to: every source, every way to get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from priority_router.config import parse_policy
from priority_router.errors import InvalidRequest
from priority_router.runtime.classify import Classified, Classifier, UnknownClass
from support import policy_texts
from support.policy_texts import a_policy


def classifier(extra: str = "", size: int = 4) -> Classifier:
    top = f'default_class = "bulk"\n{extra}'
    return Classifier(parse_policy(a_policy(policy_texts.ONLINE, policy_texts.BULK, top=top, size=size)))


def column(*names: str | bytes) -> Any:
    return np.array([[name.encode() if isinstance(name, str) else name] for name in names], dtype=object)


ONLINE = Classified("online", was_unknown=False)
BULK = Classified("bulk", was_unknown=False)


def test_the_tensor_names_the_class_of_all_rows() -> None:
    assert classifier().classify(column("online"), "{}", 1) == ONLINE
    assert classifier().classify(column("online", "online", "online"), "{}", 3) == ONLINE


def test_without_any_source_the_default_applies() -> None:
    assert classifier().classify(None, "", 1) == BULK
    assert classifier().classify(None, '{"other": 3}', 1) == BULK


def test_the_parameter_is_read_where_there_is_no_tensor() -> None:
    assert classifier().classify(None, '{"class": "online"}', 2) == ONLINE
    assert classifier().classify(column("bulk"), '{"class": "online"}', 1) == BULK


def test_the_order_of_the_sources_decides() -> None:
    reversed_order = classifier('class_sources = ["parameter", "tensor"]')
    assert reversed_order.classify(column("bulk"), '{"class": "online"}', 1) == ONLINE
    assert reversed_order.classify(column("online"), "{}", 1) == ONLINE


def test_a_source_that_is_not_listed_does_not_count() -> None:
    only_parameter = classifier('class_sources = ["parameter"]')
    assert only_parameter.classify(column("online"), "{}", 1) == BULK
    only_tensor = classifier('class_sources = ["tensor"]')
    assert only_tensor.classify(None, '{"class": "online"}', 1) == BULK


@pytest.mark.parametrize(
    ("tensor", "rows", "said"),
    [
        (column("online", "bulk"), 2, "names 'online' and 'bulk': all rows of a request share one class"),
        (column("online"), 2, r"must be BYTES \[2, 1\], found BYTES \[1, 1\]"),
        (np.array([b"online"], dtype=object), 1, r"must be BYTES \[1, 1\], found BYTES \[1\]"),
        (np.zeros((0, 1), dtype=object), 1, r"must be BYTES \[1, 1\], found BYTES \[0, 1\]"),
        (np.ones((1, 1), dtype=np.int32), 1, r"must be BYTES \[1, 1\], found int32 \[1, 1\]"),
    ],
)
def test_a_wrong_class_tensor_is_the_callers_mistake(tensor: Any, rows: int, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        classifier().classify(tensor, "{}", rows)
    assert caught.value.code == "INVALID_ARG"


def test_without_a_batch_axis_the_tensor_has_none() -> None:
    assert classifier(size=0).classify(np.array([b"online"], dtype=object), "{}", 1) == ONLINE
    with pytest.raises(InvalidRequest, match=r"must be BYTES \[1\], found BYTES \[1, 1\]"):
        classifier(size=0).classify(column("online"), "{}", 1)


@pytest.mark.parametrize("name", ["", "Online", "online ", "onlin\0e", b"\xff\xfe", "x" * 100_000])
def test_an_unknown_class_is_refused_with_the_known_ones(name: str | bytes) -> None:
    with pytest.raises(UnknownClass) as caught:
        classifier().classify(column(name), "{}", 1)
    message = str(caught.value)
    assert message.endswith("is unknown; this router knows online, bulk")
    assert len(message) < 150
    assert message.isprintable()


@pytest.mark.parametrize(
    ("name", "shown"), [(b"\xff\xfe", r"'\xff\xfe'"), ("größe", "'größe'"), ("a\nb", r"'a\nb'"), ("a\\b", r"'a\\b'")]
)
def test_an_unknown_class_is_shown_as_it_came(name: str | bytes, shown: str) -> None:
    with pytest.raises(UnknownClass) as caught:
        classifier().classify(column(name), "{}", 1)
    assert str(caught.value).startswith(f"class {shown} is unknown")


def test_an_unknown_class_may_be_served_as_the_default() -> None:
    lenient = classifier('unknown_class = "default"')
    assert lenient.classify(column("gold"), "{}", 1) == Classified("bulk", was_unknown=True)
    assert lenient.classify(None, '{"class": "gold"}', 1) == Classified("bulk", was_unknown=True)
    assert lenient.classify(column("online"), "{}", 1) == ONLINE


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ('{"class": 1}', "parameter 'class' must be a text, found int"),
        ('{"class": true}', "parameter 'class' must be a text, found bool"),
        ('{"class": "online", "class": "bulk"}', "parameter 'class' is given 2 times"),
        ('{"class": "online", "class": "online"}', "parameter 'class' is given 2 times"),
    ],
)
def test_a_wrong_parameter_is_the_callers_mistake(parameters: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        classifier().classify(None, parameters, 1)


class TestHeader:
    """The gateway's header arrives as one more parameter, after those of the body."""

    by_header = classifier('class_sources = ["header:X-Traffic-Class"]')

    def test_it_is_found_in_any_spelling(self) -> None:
        assert self.by_header.classify(None, '{"X-Traffic-Class": "online"}', 1) == ONLINE
        assert self.by_header.classify(None, '{"x-traffic-class": "online"}', 1) == ONLINE

    @pytest.mark.parametrize("name", ["x-traffic-class", "X-Traffic-Class", "X-TRAFFIC-CLASS"])
    def test_a_body_parameter_beside_it_is_refused(self, name: str) -> None:
        with pytest.raises(InvalidRequest, match="header 'x-traffic-class' is given 2 times"):
            self.by_header.classify(None, f'{{"{name}": "online", "x-traffic-class": "bulk"}}', 1)

    def test_other_sources_cannot_raise_a_client(self) -> None:
        parameters = '{"class": "online", "x-traffic-class": "bulk"}'
        assert self.by_header.classify(column("online"), parameters, 1) == BULK
        assert self.by_header.classify(column("online"), '{"class": "online"}', 1) == BULK

    def test_it_may_be_one_source_of_several(self) -> None:
        mixed = classifier('class_sources = ["header:x-class", "tensor", "parameter"]')
        assert mixed.classify(column("bulk"), '{"x-class": "online"}', 1) == ONLINE
        assert mixed.classify(column("online"), "{}", 1) == ONLINE
        assert mixed.classify(None, '{"class": "online"}', 1) == ONLINE

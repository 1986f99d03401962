# SPDX-License-Identifier: Apache-2.0
"""Loads in words and files: what they mean, and what is said of those that mean nothing."""

import random

import pytest
from priority_router.core.values import MILLISECOND, SECOND
from priority_router.ops.simulate import rates
from priority_router.ops.simulate.arrivals import Arrival, traffic
from priority_router.ops.simulate.rates import LoadFileError, Rate

CLASSES = ("online", "background")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("online=20", Rate("online", 20.0)),
        ("a=b=0.5,rows=4", Rate("a=b", 0.5, rows=4)),
        (
            "online=1e3,rows=1-8,timeout=50000,burst=3,tenant=acme",
            Rate("online", 1000.0, most_rows=8, timeout_us=50_000, burst=3, tenant="acme"),
        ),
    ],
)
def test_a_rate_in_a_word(word, meant):
    assert rates.rate(word) == meant


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("online", "CLASS=RATE"),
        ("=5", "CLASS=RATE"),
        ("online=0", "above 0"),
        ("online=nan", "above 0"),
        ("online=fast", "above 0"),
        ("online=1e9", "up to 10000000"),
        ("online=1,rows=0", "at least 1"),
        ("online=1,rows=2-8", "1-N"),
        ("online=1,rows=1-x", "at least 1"),
        ("online=1,rows=1,rows=2", "twice"),
        ("online=1,timeout=5ms", "whole number"),
        ("online=1,tenant=", "no setting"),
        ("online=1,size=3", "no setting"),
    ],
)
def test_a_word_that_means_nothing_is_named(word, said):
    with pytest.raises(LoadFileError) as caught:
        rates.rate(word)
    assert said in str(caught.value)
    assert repr(word) in str(caught.value)


def test_a_stream_has_the_rate_rows_timeout_and_tenant_that_were_asked_for():
    stream = rates.rate("online=100,rows=1-3,timeout=7000,burst=2,tenant=acme").stream
    found = list(traffic([stream], seed=1, duration=50 * SECOND))
    assert len(found) == pytest.approx(5000, rel=0.1)
    assert {arrival.rows for arrival in found} == {1, 2, 3}
    assert {(arrival.timeout, arrival.tenant) for arrival in found} == {(7 * MILLISECOND, "acme")}
    assert rates.rate("online=1,rows=5").stream.rows(random.Random(1)) == 5


TABLE = "class,time,rows,timeout,tenant,signature\nonline,0.5,2,7000,acme,a\n\nbackground,0.25,,,,\n"
LINES = (
    '{"time": 0.5, "class": "online", "rows": 2, "timeout": 7000, "tenant": "acme", "signature": "a"}\n\n'
    '{"time": 0.25, "class": "background"}\n'
)


@pytest.mark.parametrize("text", [TABLE, LINES, "\ufeff" + TABLE, TABLE.replace("\n", "\r\n")])
def test_both_forms_of_a_file_say_the_same_in_order_of_time(text):
    assert rates.parse(text, "load", CLASSES) == [
        Arrival(SECOND // 4, "background"),
        Arrival(SECOND // 2, "online", 2, "a", 7 * MILLISECOND, tenant="acme"),
    ]


def test_names_that_look_like_numbers_stay_names():
    [arrival] = rates.parse("time,class,tenant\n1,007,1e3\n", "load", ("007",))
    assert (arrival.class_name, arrival.tenant) == ("007", "1e3")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column 'time'"),
        ("time,class\n", "no request"),
        ("time,rows\n1,1\n", "load:1: no column 'class'"),
        ("time,class\n1,online,3\n", "load:2: 3 values for 2 columns"),
        ("time,class\n1,online\nsoon,online\n", "load:3: time is 'soon'"),
        ("time,class\n-1,online\n", "load:2: time is -1"),
        ("time,class\n1700000000,online\n", "seconds from the start"),
        ("time,class\n1,onlin\n", "no class 'onlin'"),
        ("time,class,row\n1,online,3\n", "load:1: no such column 'row'"),
        ("time,class,rows,rows\n1,online,3,4\n", "load:1: column 'rows' stands there twice"),
        ('{"time": 1, "class": "online"}\n{"time": 1, "row": 2}\n', "load:2: no such column 'row'"),
        ("time,class,rows\n1,online,0\n", "rows is 0"),
        ("time,class,rows\n1,online,1.5\n", "rows is 1.5"),
        ("time,class,timeout\n1,online,-1\n", "timeout is -1"),
        ('{"time": 1, "class": "online"}\n{"time"\n', "load:2: not JSON"),
        ('{"time": 1, "class": "online"}\n[]\n', "load:2: no object"),
        ('{"time": true, "class": "online"}\n', "time is True"),
        ('{"time": 1, "class": "online", "signature": []}\n', "signature is []"),
    ],
)
def test_a_file_that_means_nothing_is_named_by_line(text, said):
    with pytest.raises(LoadFileError, match="load") as caught:
        rates.parse(text, "load", CLASSES)
    assert said in str(caught.value)

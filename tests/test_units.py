"""Quantities, durations, instants, selectors and names: what is read, what is refused, and in which words."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from enbloc.units import (
    INT64_MAX,
    NANO,
    SECOND,
    Quantity,
    Requirement,
    Selector,
    equality_selector,
    format_bytes,
    format_duration,
    format_quantity,
    format_timestamp,
    instant_of,
    is_dns_label,
    is_dns_subdomain,
    is_label_value,
    natural_key,
    parse_duration,
    parse_quantity,
    parse_timestamp,
)


def brief(value: object) -> str:
    """A case's name, however long the case is."""
    return f"{type(value).__name__}-long" if isinstance(value, int) and abs(value) > 10**99 else ascii(value)[:40]


def refusal(read: Callable[[object], object], value: object) -> str:
    """What is said of a value that cannot be read; empty if it can."""
    try:
        read(value)
    except ValueError as refused:
        return str(refused)
    return ""


# ---- quantities

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


def rounded_up(exact: Fraction) -> int:
    """In nano-units, what is finer rounded away from zero."""
    nanos = exact * NANO
    return -(-nanos.numerator // nanos.denominator) if nanos >= 0 else nanos.numerator // nanos.denominator


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("number", ["0", "1", "7", "1.5", "+3", "-2", ".5", "4.", "0.25", "007"])
def test_every_suffix(number: str, suffix: str) -> None:
    assert parse_quantity(number + suffix).nanos == rounded_up(Fraction(number) * SUFFIXES[suffix])


@pytest.mark.parametrize(
    "text, nanos",
    [
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("1e+3", 1000 * NANO),
        ("1E", 10**18 * NANO),  # the suffix, not an exponent
        ("1.5e-3", 1_500_000),
        ("-1e-9", -1),
        ("1e-10", 1),  # finer than nano: rounded up
        ("-1e-10", -1),  # away from zero
        ("0.1n", 1),
        ("1e-999", 1),
        ("0e999", 0),
        ("-0", 0),
        (3, 3 * NANO),
        (0.1, 10**8),
        (1e3, 1000 * NANO),
        (1e-7, 100),
        (INT64_MAX, INT64_MAX * NANO),
        (str(INT64_MAX), INT64_MAX * NANO),
        (f"-{INT64_MAX}", -INT64_MAX * NANO),
        ("7Ei", 7 * 2**60 * NANO),
        ("9E", 9 * 10**18 * NANO),
    ],
)
def test_exponents_numbers_and_the_edge_of_the_range(text: str | int | float, nanos: int) -> None:
    assert parse_quantity(text).nanos == nanos


@pytest.mark.parametrize(
    "text", ["12E", "8Ei", "1e19", "1e999", "-1e999", str(2**63), "9" * 64, 2**63, -(2**63), 10**5000, 1e300], ids=brief
)
def test_out_of_range(text: str | int | float) -> None:
    with pytest.raises(ValueError, match=r"is out of range \(at most 9223372036854775807\)") as refused:
        parse_quantity(text)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", ".", "+", "-", "m", "Gi", "1..5", "1.5.2", "--1", "+-1", "1-", "0x10", "1,5", "1_000", "1/2"],
        *[" 1", "1 ", "1\n", "1 Gi", "1gi", "1GI", "1K", "1mi", "1Ei2", "1kk", "1mm", "1GiB", "1e", "1e+", "1e1.5"],
        *["1e1000", "1ee3", "NaN", "nan", "inf", "-inf", "Infinity", "true", "١", "1٢", "½", "１", "1" * 65],
        *["1" * 10_000, "1." + "0" * 10_000, "1e" + "9" * 10_000, float("nan"), float("inf"), float("-inf")],
    ],
    ids=brief,
)
def test_no_quantity(text: str | float) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as refused:
        parse_quantity(text)
    message = str(refused.value)
    assert str(text)[:20] in message or repr(text)[:20] in message
    assert len(message) < 150
    assert "\n" not in message


@pytest.mark.parametrize(
    "value, kind", [(True, "bool"), (False, "bool"), (None, "NoneType"), ([], "list"), ({}, "dict"), (b"1", "bytes")]
)
def test_a_quantity_is_a_string_or_a_number(value: object, kind: str) -> None:
    with pytest.raises(ValueError, match=f"not {kind}$"):
        parse_quantity(value)


def test_a_boolean_is_refused_even_when_its_number_was_read_before() -> None:
    parse_quantity(1)
    with pytest.raises(ValueError):
        parse_quantity(True)


def test_large_exponents_cost_nothing() -> None:
    began = time.perf_counter()
    for digits in range(1000):
        for text in (f"1e-{digits}", f"0.{digits}e-999", f"0e{digits}"):
            parse_quantity(text)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "text, value, milli",
    [
        ("0", 0, 0),
        ("1n", 1, 1),
        ("1m", 1, 1),
        ("1001u", 1, 2),
        ("999m", 1, 999),
        ("1", 1, 1000),
        ("1000000001n", 2, 1001),
        ("-1n", -1, -1),
        ("-1.5", -2, -1500),
        ("-1", -1, -1000),
    ],
)
def test_whole_units_and_thousandths_are_rounded_away_from_zero(text: str, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.milli) == (value, milli)


@pytest.mark.parametrize(
    "text, shown", [("0", "0"), ("1.5", "1500m"), ("2Ki", "2048"), ("1e-6", "1u"), ("-3n", "-3n"), ("-1.5", "-1500m")]
)
def test_how_a_quantity_is_written(text: str, shown: str) -> None:
    assert format_quantity(parse_quantity(text).nanos) == shown
    assert repr(parse_quantity(text)) == f"Quantity('{shown}')"


def test_equal_quantities_are_equal_however_written() -> None:
    assert parse_quantity("1024Mi") == parse_quantity("1Gi") == Quantity(2**30 * NANO)
    assert len({parse_quantity(text) for text in ("1", "1000m", "1e0", "0.001k")}) == 1
    assert parse_quantity("1") != parse_quantity("1001m")
    assert parse_quantity("1") != NANO


@given(st.integers(-INT64_MAX * NANO, INT64_MAX * NANO))
@example(INT64_MAX * NANO)
@example(-1)
def test_what_is_written_reads_back(nanos: int) -> None:
    assert parse_quantity(format_quantity(nanos)).nanos == nanos


decimals = st.from_regex(r"\A[+-]?([0-9]{1,9}\.?[0-9]{0,12}|\.[0-9]{1,12})\Z")
exponents = st.from_regex(r"\A[eE][+-]?[0-9]{1,2}\Z")


@given(decimals, st.one_of(st.sampled_from(sorted(SUFFIXES)), exponents))
def test_exact_as_a_fraction_is(number: str, suffix: str) -> None:
    unit = SUFFIXES[suffix] if suffix in SUFFIXES else Fraction(10) ** int(suffix[1:])
    nanos = rounded_up(Fraction(number) * unit)
    if abs(nanos) > INT64_MAX * NANO:
        with pytest.raises(ValueError, match="out of range"):
            parse_quantity(number + suffix)
    else:
        assert parse_quantity(number + suffix).nanos == nanos


@given(st.one_of(st.text(), st.text(alphabet="0123456789.+-eEnumkMGTPi \n"), st.integers(), st.floats()))
def test_anything_else_is_refused_in_one_short_line(text: str | int | float) -> None:
    message = refusal(parse_quantity, text)
    assert len(message) < 400
    assert "\n" not in message
    assert message or abs(parse_quantity(text).nanos) <= INT64_MAX * NANO


@pytest.mark.parametrize(
    "value, shown",
    [
        (0, "0"),
        (1, "1"),
        (1023, "1023"),
        (1024, "1Ki"),
        (3 * 2**30, "3Gi"),
        (2**30 + 1, str(2**30 + 1)),
        (2**60, "1Ei"),
    ],
)
def test_bytes_with_the_largest_exact_suffix(value: int, shown: str) -> None:
    assert format_bytes(value) == shown
    assert parse_quantity(shown).value == value


# ---- durations


@pytest.mark.parametrize(
    "text, nanos",
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1h30m", 5400 * SECOND),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("1.s", SECOND),
        ("300ms", 300_000_000),
        ("-1s", -SECOND),
        ("+5s", 5 * SECOND),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("7ns", 7),
        ("0.5ns", 0),  # finer than a nanosecond is cut off, as Go does
        ("1m1m", 120 * SECOND),
        ("1s1h", 3601 * SECOND),
        ("-1h30m", -5400 * SECOND),
        (f"{INT64_MAX}ns", INT64_MAX),
    ],
)
def test_durations(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "1d", "1h-5m", "1h 5m", " 5s", "5s ", "5s\n", "s", ".s", "--5s", "+-5s", "+", "-", "1S", "1e3s"]
    + ["NaN", "inf", "٥s", "1.2.3s", "00", "1" * 10_000 + "s", "1s" * 10_000],
    ids=brief,
)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration") as refused:
        parse_duration(text)
    assert len(str(refused.value)) < 150
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", [f"{INT64_MAX + 1}ns", "3000000h", "-3000000h", "9" * 60 + "h"])
def test_a_duration_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        parse_duration(text)


@pytest.mark.parametrize("value", [5, 1.5, None, True, ["5s"]])
def test_a_duration_is_a_string(value: object) -> None:
    with pytest.raises(ValueError, match=f"not {type(value).__name__}$"):
        parse_duration(value)


@pytest.mark.parametrize(
    "nanos, shown",
    [
        (0, "0s"),
        (45 * SECOND, "45s"),
        (5400 * SECOND, "1h30m"),
        (3600 * SECOND, "1h"),
        (3601 * SECOND, "1h1s"),
        (SECOND // 2, "0.5s"),
        (1, "0.000000001s"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_how_a_duration_is_written(nanos: int, shown: str) -> None:
    assert format_duration(nanos) == shown


@given(st.integers(-INT64_MAX, INT64_MAX))
def test_a_duration_reads_back(nanos: int) -> None:
    assert parse_duration(format_duration(nanos)) == nanos


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    message = refusal(parse_duration, text)
    assert "\n" not in message
    assert message or abs(parse_duration(text)) <= INT64_MAX


# ---- instants


@pytest.mark.parametrize(
    "text, nanos",
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", SECOND),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.5Z", -SECOND // 2),
        ("2026-01-31T08:00:00.123456789Z", 1_769_846_400 * SECOND + 123_456_789),
    ],
)
def test_instants(text: str, nanos: int) -> None:
    assert parse_timestamp(text) == nanos


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T08:00:00",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "٢026-01-01T00:00:00Z",
    ]
    + ["2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Z\n", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99", 5, None],
)
def test_no_instant(text: object) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_timestamp(text)


FIRST, LAST = parse_timestamp("0001-01-01T00:00:00Z"), parse_timestamp("9999-12-31T23:59:59.999999999Z")


@given(st.integers(FIRST, LAST))
@example(FIRST)
@example(LAST)
@example(-1)
def test_an_instant_reads_back(nanos: int) -> None:
    assert parse_timestamp(format_timestamp(nanos)) == nanos


@given(st.integers(0, LAST), st.integers(0, LAST))
@example(SECOND, SECOND * 3 // 2)
@example(460_000_000, 468_000_000)
def test_times_are_compared_by_their_instants(one: int, other: int) -> None:
    """As text 1.5 s would come before 1 s: the stamps of `sim` and `up` have fractions."""
    assert (instant_of(format_timestamp(one)) < instant_of(format_timestamp(other))) == (one < other)


@pytest.mark.parametrize("text", [None, "", "yesterday", 3])
def test_what_is_no_time_is_older_than_any(text: object) -> None:
    assert instant_of(text) == 0


# ---- selectors


LABELS = {
    "zone": "a",
    "size": "7",
    "free": "",
    "neg": "-3",
    "plus": "+9",
    "frac": "7.5",
    "word": "seven",
    "huge": "9" * 30,
}


@pytest.mark.parametrize(
    "key, operator, values, matches",
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["b"], False),
        ("none", "In", ["a", ""], False),
        ("free", "In", [""], True),
        ("zone", "NotIn", ["b"], True),
        ("zone", "NotIn", ["a"], False),
        ("none", "NotIn", ["a"], True),  # a key that is missing is not among the values
        ("none", "NotIn", [""], True),
        ("zone", "Exists", [], True),
        ("free", "Exists", [], True),
        ("none", "Exists", [], False),
        ("zone", "DoesNotExist", [], False),
        ("none", "DoesNotExist", [], True),
        ("size", "Gt", ["6"], True),
        ("size", "Gt", ["7"], False),
        ("size", "Lt", ["8"], True),
        ("size", "Lt", ["7"], False),
        ("neg", "Lt", ["0"], True),
        ("neg", "Gt", ["-4"], True),
        ("plus", "Gt", ["8"], True),
        ("none", "Gt", ["0"], False),
        ("none", "Lt", ["0"], False),
        ("word", "Gt", ["0"], False),
        ("word", "Lt", ["0"], False),
        ("frac", "Gt", ["0"], False),
        ("frac", "Lt", ["9"], False),
        ("free", "Lt", ["9"], False),
        ("huge", "Gt", ["0"], False),  # no int64
    ],
)
def test_requirements(key: str, operator: str, values: list[str], matches: bool) -> None:
    assert Requirement(key, operator, values).matches(LABELS) is matches


@pytest.mark.parametrize(
    "operator, values, message",
    [
        ("in", ["a"], "'in' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
        ("", [], "'' is none of"),
        ("x" * 10_000, [], "is none of"),
        ("In", [], "In on k needs values"),
        ("NotIn", [], "NotIn on k needs values"),
        ("Exists", ["a"], "Exists on k takes no values"),
        ("DoesNotExist", [""], "DoesNotExist on k takes no values"),
        ("Gt", [], "Gt on k needs one integer"),
        ("Gt", ["1", "2"], "Gt on k needs one integer"),
        ("Lt", ["1.5"], "Lt on k needs one integer"),
        ("Lt", ["٣"], "Lt on k needs one integer"),
        ("Lt", ["9" * 5000], "Lt on k needs one integer"),
    ],
)
def test_bad_requirements(operator: str, values: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        Requirement("k", operator, values)
    assert len(str(refused.value)) < 200


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"]))


@given(labels, st.sampled_from("abc"), st.lists(st.sampled_from(["", "1", "2", "x"]), min_size=1))
def test_not_in_and_does_not_exist_are_the_opposites(has: dict[str, str], key: str, values: list[str]) -> None:
    assert Requirement(key, "In", values).matches(has) != Requirement(key, "NotIn", values).matches(has)
    assert Requirement(key, "Exists").matches(has) != Requirement(key, "DoesNotExist").matches(has)


@given(labels, labels)
def test_a_map_of_labels_selects_what_holds_it(wanted: dict[str, str], has: dict[str, str]) -> None:
    assert equality_selector(wanted).matches(has) == (wanted.items() <= has.items())


def test_a_selector_is_a_conjunction_and_an_empty_one_matches_all() -> None:
    both = Selector([Requirement("zone", "In", ["a"]), Requirement("size", "Gt", ["9"])])
    assert not both.matches(LABELS)
    assert both.matches({"zone": "a", "size": "10"})
    assert Selector([]).matches({})


def test_equal_selectors_have_equal_facts() -> None:
    one = Selector([Requirement("a", "In", ["x", "y"]), Requirement("b", "Exists")])
    other = Selector([Requirement("b", "Exists"), Requirement("a", "In", ["y", "x", "x"])])
    assert one.fact == other.fact
    assert one.fact != Selector([Requirement("a", "NotIn", ["x", "y"]), Requirement("b", "Exists")]).fact


# ---- names


@pytest.mark.parametrize(
    "name, label, subdomain, value",
    [
        ("a", True, True, True),
        ("a-1", True, True, True),
        ("0", True, True, True),
        ("a.b", False, True, True),
        ("A", False, False, True),
        ("a_b", False, False, True),
        ("", False, False, True),
        ("-a", False, False, False),
        ("a-", False, False, False),
        ("a..b", False, False, True),
        (".a", False, False, False),
        ("a.", False, False, False),
        ("a\n", False, False, False),
        ("a b", False, False, False),
        ("a/b", False, False, False),
        ("ä", False, False, False),
        ("٣", False, False, False),
        ("a" * 63, True, True, True),
        ("a" * 64, False, True, False),
        (".".join(["a" * 62] * 4), False, True, False),
        ("a" * 254, False, False, False),
    ],
)
def test_names(name: str, label: bool, subdomain: bool, value: bool) -> None:
    assert (is_dns_label(name), is_dns_subdomain(name), is_label_value(name)) == (label, subdomain, value)


def test_names_sort_as_people_sort_them() -> None:
    names = ["n10", "n2", "n1", "m", "n1-b2", "n1-b10", "n", "10", "9", "n02", "n01"]
    assert sorted(names, key=natural_key) == [
        *["9", "10", "m", "n", "n01", "n1", "n1-b2", "n1-b10", "n02", "n2", "n10"],
    ]


@given(st.lists(st.text(alphabet="ab019.-٣é", max_size=12), unique=True), st.randoms())
def test_natural_order_is_total(names: list[str], chance: random.Random) -> None:
    """No two names are equal in it, so that the order never depends on who came first."""
    assert len({natural_key(name) for name in names}) == len(names)
    shuffled = names[:]
    chance.shuffle(shuffled)
    assert sorted(shuffled, key=natural_key) == sorted(names, key=natural_key)


@given(st.integers(0, 10**18), st.integers(0, 10**18))
def test_numbers_in_names_sort_as_numbers(one: int, other: int) -> None:
    assert (natural_key(f"n{one}") < natural_key(f"n{other}")) == (one < other)

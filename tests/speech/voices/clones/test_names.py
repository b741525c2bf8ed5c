"""Names of clones: which are valid, and which are the same name."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.names import MAX_NAME_KEY_LENGTH, MAX_NAME_LENGTH, UnusableName, clone_name, name_key


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ava", "Ava"),
        ("  My voice \t\r\n", "My voice"),
        ("\u00a0\u3000Ava\u2003", "Ava"),
        ("x" * 40, "x" * 40),
        (" " * 100 + "x" * 40 + " " * 100, "x" * 40),
        ("आवाज़ मेरी", "आवाज़ मेरी"),
        ("Zoë & Söhne (2)", "Zoë & Söhne (2)"),
        ("\U0001f3a4" * 40, "\U0001f3a4" * 40),
        ("\U0001f399\ufe0f Studio", "\U0001f399\ufe0f Studio"),
    ],
)
def test_a_name_is_kept_without_the_whitespace_around_it(text: str, name: str) -> None:
    assert clone_name(text) == name


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u00a0", "\u3000", "\ufe0f"])
def test_a_blank_name_is_refused(text: str) -> None:
    with pytest.raises(UnusableName, match="blank"):
        clone_name(text)


@pytest.mark.parametrize("text", ["x" * 41, "e\u0301" * 21, "\U0001f3a4" * 41, "x" * 1_000_000])
def test_a_name_of_more_than_40_code_points_is_refused(text: str) -> None:
    with pytest.raises(UnusableName, match=f"has {len(text)} characters; at most 40"):
        clone_name(text)


@pytest.mark.parametrize(
    "character",
    [
        "\x00", "\x07", "\n", "\x7f", "\x85", "\xad", "\u034f", "\u061c", "\u115f", "\u180e",
        "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e",
        "\u2060", "\u2066", "\u2069", "\u2800", "\u3164", "\ud800", "\ufeff", "\uffa0",
        "\U000e0041",
    ],
)  # fmt: skip
def test_a_control_or_invisible_character_is_refused_by_its_code_point(character: str) -> None:
    with pytest.raises(UnusableName, match=f"U\\+{ord(character):04X}"):
        clone_name(f"a{character}b")


@pytest.mark.parametrize(
    "spellings",
    [
        ("Ava", "AVA", "ava", "aVa"),
        # SQLite's NOCASE and lower() fold ASCII only.
        ("ÄNNE", "änne", "A\u0308nne"),
        ("ÉLODIE", "élodie", "E\u0301lodie"),
        ("МАША", "маша"),
        # PostgreSQL's lower() keeps these apart: it maps one character to one.
        ("STRASSE", "straße", "STRA\u1e9eE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", "σίσυφοσ"),
        ("ﬁona", "Fiona", "FIONA"),
        ("\u017fam", "Sam"),
        ("\u0130da", "i\u0307da", "I\u0307DA"),
        ("\u1e96", "H\u0331"),
        # Compatibility forms.
        ("\uff21\uff56\uff41", "Ava"),
        ("Voice ②", "voice 2"),
        ("\u212bsa", "åsa", "A\u030asa"),
        ("K\u212a", "kk"),
        ("a\u00a0b", "A b"),
        ("\u2665\ufe0f", "\u2665"),
    ],
)
def test_spellings_of_one_name_share_a_key(spellings: tuple[str, ...]) -> None:
    assert len({name_key(clone_name(spelling)) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ava", "Eva"),
        ("Ava", "A va"),
        ("आवाज", "आवाज़"),
        ("Ida", "\u0131da"),
        ("resume", "résumé"),
        ("\u0410va", "Ava"),
    ],
)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@given(st.text(max_size=60))
def test_any_text_gives_a_clean_name_or_a_reason(text: str) -> None:
    try:
        name = clone_name(text)
    except UnusableName:
        return
    assert 1 <= len(name) <= MAX_NAME_LENGTH
    assert name == name.strip()
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in name)
    assert clone_name(name) == name
    assert 1 <= len(name_key(name)) <= MAX_NAME_KEY_LENGTH


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_key_is_the_key_of_itself_and_of_every_normal_form(name: str) -> None:
    key = name_key(name)
    assert name_key(key) == key
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert name_key(unicodedata.normalize(form, name)) == key


def test_the_longest_key_of_one_character_is_within_the_bound() -> None:
    assert len(name_key("\ufdfa" * MAX_NAME_LENGTH)) == MAX_NAME_KEY_LENGTH

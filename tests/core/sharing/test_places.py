"""Bounds on what is held at once, and the share of each owner."""

from __future__ import annotations

import pytest

from core.errors import ServerOverloaded
from core.sharing.places import WITHOUT_KEY, Holder, Share, of_organizations


@pytest.fixture
def places() -> Share:
    """Eight places, of which one owner may hold a quarter."""
    return Share(8, 2, "tests")


def test_an_owner_holds_its_share_and_others_theirs(places: Share) -> None:
    for owner in ("a", "b"):
        places.take(2, owner)
        with pytest.raises(ServerOverloaded, match="organization"):
            places.take(1, owner)

    assert places.held == 4
    assert (places.refused_share, places.refused_full) == (2, 0)


def test_all_owners_together_hold_at_most_the_bound(places: Share) -> None:
    for owner in "abcd":
        places.take(2, owner)

    with pytest.raises(ServerOverloaded) as refused:
        places.take(1, "e")

    assert "organization" not in refused.value.message
    assert (places.refused_share, places.refused_full) == (0, 1)


def test_released_places_can_be_taken_again(places: Share) -> None:
    for _ in range(100):
        places.take(2, "a")
        places.release(1, "a")
        places.release(1, "a")

    assert places.held == 0
    assert not places._by_owner, "an owner without places is forgotten"


def test_a_refusal_takes_nothing(places: Share) -> None:
    with pytest.raises(ServerOverloaded):
        places.take(3, "a")

    assert places.held == 0
    places.take(2, "a")


def test_callers_without_a_key_have_one_share_together(places: Share) -> None:
    places.take(2)
    with pytest.raises(ServerOverloaded) as refused:
        places.check(1, WITHOUT_KEY)
    assert "organization" not in refused.value.message
    places.check(2, "a")


def test_a_holder_has_one_place_at_a_time(places: Share) -> None:
    other, holder = Share(4, 1), Holder()
    holder.owner = "a"

    holder.hold(places)
    holder.hold(other)
    assert (places.held, other.held) == (0, 1)

    holder.release_place()
    holder.release_place()
    assert (places.held, other.held) == (0, 0)


def test_a_refused_holder_keeps_its_place(places: Share) -> None:
    full, holder = Share(1, 1), Holder()
    full.take(1, "b")
    holder.hold(places)

    with pytest.raises(ServerOverloaded):
        holder.hold(full)

    assert (places.held, full.held) == (1, 1)


def test_a_share_is_at_least_one_place() -> None:
    assert of_organizations(1, "tests").most_each == 1

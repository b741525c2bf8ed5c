"""trustedrouter-provider-check: what a router asks of a provider before it sends callers there."""

from __future__ import annotations

import json

from tests.conformance.place import Place
from tests.conformance.results import Result
from tests.conformance.suites.programs import BIN, aimed, ended, json_report


def check(place: Place) -> list[Result]:
    """Run all six tiers; a warning counts as a failure."""
    file = place.directory / "provider-check.json"
    program, options = BIN / "trustedrouter-provider-check", ("--tier", "6", "--json", file)
    key = {"TR_PROVIDER_API_KEY": place.key}
    return [
        Result(each["id"], ended(each["status"]), json.dumps(each["measured"]))
        for each in json_report([program, *aimed(place), *options], place.directory, key, file)[
            "checks"
        ]
    ]

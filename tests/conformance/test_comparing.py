"""The lane reports every difference, and both of its tables can fail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.http import table as http_table
from tests.conformance.http.case import After, Case, get
from tests.conformance.http.engine import judge
from tests.conformance.model_server import understood
from tests.conformance.place import Place
from tests.conformance.results import Expectation, Outcome, Result, compare
from tests.conformance.suites import openai_python, programs
from tests.conformance.websocket import table as websocket_table
from tests.conformance.websocket.case import Case as WebSocketCase
from tests.conformance.websocket.case import failed, frame
from tests.conformance.websocket.engine import run_table as websocket_run

LISTED = Expectation("any", "list*", Outcome.FAILED, "CHAT", "because")


def test_what_passes_and_what_fails_as_listed_is_expected() -> None:
    verdict = compare(
        [Result("a", Outcome.PASSED), Result("list[1]", Outcome.FAILED, "why")], [LISTED]
    )
    assert (verdict.cases, verdict.passed, verdict.expected) == (2, 1, ((LISTED, 1),))
    assert verdict.unexpected == ()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SKIPPED])
def test_what_is_not_listed_has_to_pass(outcome: Outcome) -> None:
    verdict = compare([Result("a", outcome, "why")], [])
    assert verdict.unexpected == (f"a: {outcome.value}: why",)
    assert verdict.cases == 1


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.SKIPPED])
def test_a_listed_case_that_ends_otherwise_is_unexpected(outcome: Outcome) -> None:
    verdict = compare([Result("list", outcome)], [LISTED])
    assert verdict.unexpected == (f"list: is listed, and {outcome.value}",)
    assert (verdict.expected, verdict.passed, verdict.cases) == ((), 0, 1)


def test_a_pattern_without_a_case_is_unexpected() -> None:
    verdict = compare([Result("a", Outcome.PASSED)], [LISTED])
    assert verdict.unexpected == ("list*: is listed, and no case has this name",)
    assert verdict.cases == 1


def test_a_pattern_fits_whole_names_and_takes_brackets_as_they_are() -> None:
    listed = Expectation("any", "x: test_*[a]", Outcome.FAILED, "CHAT", "because")
    assert listed.covers("x: test_one[a]")
    assert not listed.covers("x: test_one[a] again")
    assert not listed.covers("x: test_onea")


def test_pytest_results_are_read_with_their_outcome() -> None:
    report = """<testsuites><testsuite>
        <testcase classname="tests.mod.TestOne" name="test_a[x]"/>
        <testcase classname="tests.mod.TestOne" name="test_b"><failure message="no"/></testcase>
        <testcase classname="tests.mod.TestOne" name="test_c"><skipped message="gone"/></testcase>
        <testcase classname="tests.mod.TestOne" name="test_d"><error message="broken"/></testcase>
    </testsuite></testsuites>"""
    assert programs.junit(report) == [
        Result("TestOne::test_a[x]", Outcome.PASSED),
        Result("TestOne::test_b", Outcome.FAILED, "no"),
        Result("TestOne::test_c", Outcome.SKIPPED, "gone"),
        Result("TestOne::test_d", Outcome.FAILED, "broken"),
    ]


def test_the_pin_of_the_source_archive_is_the_one_of_the_lock() -> None:
    pin = openai_python.pin(programs.LOCK.read_text())
    assert pin.startswith(f"openai=={programs.locked('openai')} ")
    assert pin.count("--hash=sha256:") >= 2
    assert "\n#" not in pin
    assert "==" not in pin.partition("==")[2]


def test_values_that_are_gone_from_the_tests_are_noticed() -> None:
    text = "\n".join(refused for refused, _ in openai_python.TAKEN)
    assert openai_python.replaced(text) == "\n".join(taken for _, taken in openai_python.TAKEN)
    with pytest.raises(programs.SuiteBroken, match="logit_bias"):
        openai_python.replaced("max_tokens=0")


def test_a_prompt_that_names_keys_becomes_one_that_the_simulator_understands() -> None:
    asked = {
        "messages": [{"role": "user", "content": "A joke with 'setup' and 'punchline'."}],
        "response_format": {"type": "json_object"},
    }
    said = understood(asked)["messages"][0]["content"].removeprefix("say: ")
    assert set(json.loads(said)) == {"setup", "punchline"}
    plain = {"messages": [{"role": "user", "content": "Hello 'you'"}]}
    assert understood(plain) == plain


@pytest.mark.parametrize("tables", [http_table, websocket_table])
def test_every_case_has_a_name_of_its_own_and_its_section(tables: object) -> None:
    cases: list[Case | WebSocketCase] = list(tables.cases())  # type: ignore[attr-defined]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)) > 190
    assert all(case.section.startswith("RFC ") for case in cases)


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """A server that sends the next of ``answers`` for each read of its only connection, then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                for answer in answers:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def answer(status: int = 200, body: bytes = b"{}", extra: bytes = b"") -> bytes:
    """An answer as the gateway gives it."""
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n%b\r\n%b" % (status, len(body), extra, body)


ERROR = answer(400, b'{"error": {"message": "no"}}', b"date: now\r\nx-request-id: req_1\r\n")
SERVED = Case("any", "RFC 9112", get(), ("200",), After.KEPT)
REFUSED = Case("any", "RFC 9112", get(), ("400",), After.CLOSED)


@pytest.mark.parametrize(
    ("case", "answers", "problem"),
    [
        (SERVED, [answer(), answer()], ""),
        (SERVED, [answer(500)], "answer 1 is 500, not 200"),
        (SERVED, [answer()], "the connection was closed"),
        (SERVED, [answer(), answer(404)], "the next request was answered with 404"),
        (SERVED, [answer() + answer(), answer()], "a third answer"),
        (SERVED, [b"HTTP/1.1 100 C\r\n\r\n" + answer(), answer()], "[100] came"),
        (SERVED, [b"nonsense\r\n\r\n"], "no status line"),
        (SERVED, [b""], "closed without answer 1"),
        (REFUSED, [ERROR], ""),
        (REFUSED, [ERROR + answer()], "a second answer to one request: 200"),
        (REFUSED, [ERROR.replace(b"date: now\r\n", b"")], "the 400 has no date"),
        (REFUSED, [ERROR.replace(b"x-request-id", b"x-other")], "the 400 has no x-request-id"),
        (REFUSED, [ERROR.replace(b'{"error', b'("error')], "the 400 is no JSON error"),
    ],
)
def test_the_engine_tells_what_is_wrong(case: Case, answers: list[bytes], problem: str) -> None:
    with answering(*answers) as port:
        found = judge(case, port, "key", 1)
    assert problem in found if problem else found == "", found


UPGRADED = (
    b"HTTP/1.1 101 X\r\nupgrade: websocket\r\n"
    b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
SHUT = frame(8, b"\x03\xea", masked=False)


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([UPGRADED, SHUT], ""),
        ([UPGRADED, frame(8, b"\x03\xe8", masked=False)], "close:1000 instead of close:1002"),
        ([UPGRADED, frame(10, b"a", masked=False)], "pong:61 instead of close:1002"),
        ([UPGRADED, frame(8, b"\x03\xea")], "a masked frame instead of close:1002"),
        ([UPGRADED, b""], "the connection ended instead of close:1002"),
        ([UPGRADED, SHUT + SHUT], "not closed after the close frame"),
        ([UPGRADED.replace(b"s3p", b"xxx"), SHUT], "Sec-WebSocket-Accept"),
        ([UPGRADED.replace(b" 101 ", b" 400 ")], "answered with 400"),
    ],
)
def test_the_engine_of_websockets_tells_what_is_wrong(answers: list[bytes], problem: str) -> None:
    case = failed("any", "RFC 6455", frame(3))
    with answering(*answers) as port:
        place = Place(Path(), port, port, port, "key", "key")
        (found,) = websocket_run(place, [case])
    assert problem in found.detail
    assert (found.outcome is Outcome.PASSED) is (problem == ""), found

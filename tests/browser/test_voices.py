"""The page of voices plays samples, speaks texts and clones a voice by session, metered without a key."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.ids import NIL_UUID
from speech.models import VoiceClone
from tests.browser.conftest import Person, Visit, log_in, running_chromium
from tests.support.builders.clips import voice, wav
from tests.support.pages.axe import serious_findings
from tests.support.until import until
from usage.models import SpeechRow

SECONDS = 60_000
"""Milliseconds that a page has for anything that is spoken, on a busy machine."""
TEXT = "The morning train was late again. We walked along the river. It was warm."


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clip that Chromium's fake microphone repeats."""
    file = tmp_path_factory.mktemp("microphone") / "voice.wav"
    file.write_bytes(wav(voice(20.0, rate=48_000), rate=48_000))
    return file


@pytest.fixture(scope="module")
def chromium(microphone: Path) -> Iterator[Browser]:
    """Start the browser with a fake microphone that needs no permission of a person."""
    with running_chromium(
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={microphone}",
    ) as browser:
        yield browser


@pytest.fixture
def voices(consoling: Visit) -> Page:
    """The page of voices, checked once."""
    page = consoling.open("/console/voices")
    page.locator("[data-checked]").wait_for()
    return page


def rows(visit: Visit) -> list[SpeechRow]:
    return list(SpeechRow.objects.filter(organization_id=visit.gateway.organization.pk))


def heard_seconds(audio: Locator) -> float:
    """How much of the sound the browser has played."""
    found: float = audio.evaluate("each => each.currentTime")
    return found


def speak(page: Page, text: str, transport: str, sound_format: str | None = None) -> None:
    page.fill("#text", text)
    page.select_option("#transport", transport)
    if sound_format is not None:
        page.select_option("#format", sound_format)
    page.click("#say")
    expect(page.locator("#characters")).not_to_have_text("–", timeout=SECONDS)  # noqa: RUF001


def test_every_voice_can_be_heard(consoling: Visit, voices: Page) -> None:
    assert voices.locator("[data-voice]").count() == 4, "the English ones; Hindi is for enterprises"

    voices.click("[aria-label='Listen to leo']")

    expect(voices.locator("[aria-label='Stop leo'][data-state=plays]")).to_be_visible(
        timeout=SECONDS
    )
    until(lambda: heard_seconds(voices.locator("#sampler")) > 0.3)
    expect(voices.locator("[aria-label='Listen to leo']")).to_be_visible(timeout=SECONDS)
    assert voices.locator("#sampler").evaluate("each => each.ended")
    (row,) = rows(consoling)
    assert (row.voice, row.outcome, row.api_key_id) == ("leo", "success", NIL_UUID)
    expect(voices.locator("#used")).to_have_text(str(row.characters), timeout=SECONDS)

    # The browser plays a sample again without another request.
    voices.click("[aria-label='Listen to leo']")
    expect(voices.locator("[data-state=plays]")).to_be_visible(timeout=SECONDS)
    assert len(rows(consoling)) == 1


@pytest.mark.parametrize("sound_format", ["wav", "mp3", "opus", "flac"])
def test_a_text_is_spoken_as_one_file(consoling: Visit, voices: Page, sound_format: str) -> None:
    voices.click("[aria-label='Use emma']")
    voices.fill("#speed", "1.25")

    speak(voices, "[pause] The morning train was late again.", "file", sound_format)

    until(lambda: heard_seconds(voices.locator("#player")) > 0.3)
    (row,) = rows(consoling)
    assert (row.voice, row.response_format, row.transport) == ("emma", sound_format, "http")
    assert row.api_key_id == NIL_UUID
    assert row.characters == len(" The morning train was late again.")
    expect(voices.locator("#characters")).to_have_text(str(row.characters))
    expect(voices.locator("#audio")).to_have_text(f"{row.audio_ms / 1000:.2f} s")
    expect(voices.locator("#first-sound")).to_contain_text("s")
    assert 0 < float(voices.locator("#factor").inner_text()) < 100
    assert voices.locator("#download").get_attribute("download") == (
        f"emma-the-morning-train-was-late-again.{sound_format}"
    )


def test_a_text_is_streamed_and_played_as_it_comes(consoling: Visit, voices: Page) -> None:
    voices.evaluate("""() => {
      window.started = [];
      const start = AudioBufferSourceNode.prototype.start;
      AudioBufferSourceNode.prototype.start = function (at) {
        window.started.push(this.buffer.duration);
        return start.call(this, at);
      };
    }""")

    speak(voices, f"{TEXT} " * 12, "stream")

    (row,) = rows(consoling)
    assert (row.response_format, row.outcome) == ("pcm", "success")
    played = voices.evaluate("window.started")
    assert len(played) > 1
    assert sum(played) == pytest.approx(row.audio_ms / 1000, abs=0.01)
    until(lambda: voices.locator("#player").evaluate("each => each.readyState") > 0)
    duration = voices.locator("#player").evaluate("each => each.duration")
    assert duration == pytest.approx(row.audio_ms / 1000, abs=0.01)


@pytest.mark.parametrize("sound_format", ["wav", "pcm"])
def test_sentences_arrive_one_by_one_and_play_in_order(
    consoling: Visit, voices: Page, sound_format: str
) -> None:
    voices.evaluate("""() => {
      window.turns = [];
      new MutationObserver(() => {
        const lines = [...document.querySelectorAll("#sentences li")];
        const turn = lines.findIndex((line) => line.hasAttribute("aria-current"));
        if (turn >= 0 && turn !== window.turns.at(-1)) window.turns.push(turn);
      }).observe(document.getElementById("sentences"), { subtree: true, attributes: true });
    }""")

    speak(voices, TEXT, "socket", sound_format)

    expect(voices.locator("#sentences li")).to_have_count(3)
    expect(voices.locator("#sentences li").nth(2)).to_contain_text("s of sound")
    for scheme in ("light", "dark"):
        voices.emulate_media(color_scheme=scheme)
        assert serious_findings(voices) == []
    (row,) = rows(consoling)
    assert (row.transport, row.outcome, row.sentences) == ("websocket", "success", 3)
    assert (row.api_key_id, row.characters) == (NIL_UUID, len(TEXT))
    until(lambda: voices.evaluate("window.turns") == [0, 1, 2])
    until(lambda: voices.locator("#player").evaluate("each => each.ended"))


def test_a_sentence_that_the_voice_cannot_read_is_named_and_the_others_are_spoken(
    consoling: Visit, voices: Page
) -> None:
    speak(voices, "The morning train was late again.\n这是中文。\nIt was warm.", "socket")

    expect(voices.locator("#sentences li")).to_have_count(2)
    expect(voices.locator("#speak-problem")).to_contain_text(
        "The voice can read no word of this text"
    )
    (row,) = rows(consoling)
    assert (row.outcome, row.sentences) == ("success", 2)


def test_a_stopped_session_is_metered_as_far_as_it_was_spoken(
    consoling: Visit, voices: Page
) -> None:
    voices.fill("#text", " ".join(f"This is sentence number {n}." for n in range(400)))
    voices.select_option("#transport", "socket")
    voices.click("#say")
    voices.locator("#sentences li").first.wait_for(timeout=SECONDS)

    voices.click("#stop")

    expect(voices.locator("#progress")).to_have_text("Stopped", timeout=SECONDS)
    expect(voices.locator("#request")).to_be_visible(timeout=SECONDS)
    (row,) = rows(consoling)
    assert 0 < row.sentences < 400
    expect(voices.locator("#characters")).to_have_text(f"{row.characters:,}")


def test_problems_are_said_in_words_beside_their_field(consoling: Visit, voices: Page) -> None:
    voices.fill("#speed", "9")
    expect(voices.locator("#speed-problem")).to_have_text(
        "The speed must be a number from 0.25 to 4.0."
    )
    voices.fill("#speed", "1")
    voices.fill("#text", "[pause:9s] Hello.")
    expect(voices.locator("#text-problem")).to_contain_text("[pause:9s] is too long")
    voices.fill("#text", "Hello.")
    expect(voices.locator("#count")).to_have_text("Counts as 6 characters")

    consoling.gateway.organization.speech_characters_per_day = 4
    consoling.gateway.organization.save()
    consoling.gateway.sees_changes()
    for transport in ("file", "socket"):
        voices.select_option("#transport", transport)
        voices.click("#say")
        expect(voices.locator("#speak-problem")).to_contain_text(
            "limit is 4 characters a day", timeout=SECONDS
        )
        expect(voices.locator("#say")).to_be_enabled()
    expect(voices.locator("#count")).to_have_text("Counts as 6 characters; 4 are left today")
    consoling.problems[:] = [each for each in consoling.problems if "429" not in each]


def test_a_tag_is_inserted_where_the_cursor_is(voices: Page) -> None:
    voices.fill("#text", "One two")
    voices.locator("#text").press("Home")
    voices.click("[data-inserts='[long pause]']")
    assert voices.locator("#text").input_value() == "[long pause] One two"
    voices.click("text=What tags do")
    voices.click("[data-inserts='[laughs]']")
    assert voices.locator("#text").input_value() == "[long pause] [laughs] One two"
    expect(voices.locator("#count")).to_have_text("Counts as 9 characters")


def test_a_voice_is_recorded_cloned_spoken_and_deleted(consoling: Visit, voices: Page) -> None:
    name = "My own voice"
    voices.click("#record")
    expect(voices.locator("#record-label")).to_have_text("Stop")
    expect(voices.locator("#recorded")).to_have_text("4 of 12 s", timeout=SECONDS)
    voices.click("#record")
    expect(voices.locator("#clip")).to_be_visible()
    voices.fill("#name", name)
    voices.check("#consent")
    voices.click("#make")
    voices.wait_for_url("**/console/*/voices?voice=voice_*", timeout=60_000)

    (clone,) = VoiceClone.objects.filter(organization=consoling.gateway.organization)
    assert (clone.name, clone.api_key_id) == (name, NIL_UUID)
    assert 3.5 < clone.reference_seconds < 8
    assert voices.locator("#voice").input_value() == clone.pk
    speak(voices, "Hello from a clone.", "file")
    (row,) = rows(consoling)
    assert (row.voice, row.cloned, row.outcome) == (clone.pk, True, "success")
    assert row.api_key_id == NIL_UUID
    until(lambda: heard_seconds(voices.locator("#player")) > 0.3)

    voices.click(f"[aria-label='Delete {name}']")
    voices.click("text=Delete the clone")
    expect(voices.locator(".notice.success")).to_have_text(f"The clone {name} is deleted.")
    expect(voices.locator("[data-voice]")).to_have_count(4)
    clone.refresh_from_db()
    assert clone.deleted_at is not None
    consoling.open(f"/console/requests/{row.request_id}")
    expect(voices.locator("#facts")).to_contain_text("without a key")


def test_a_file_becomes_a_clone_and_a_short_one_does_not(
    consoling: Visit, voices: Page, tmp_path: Path
) -> None:
    short, long = tmp_path / "short.wav", tmp_path / "long.wav"
    short.write_bytes(wav(voice(2.0)))
    long.write_bytes(wav(voice(15.0)))
    voices.set_input_files("#file", short)
    expect(voices.locator("#clip-problem")).to_contain_text("2.0 seconds long. At least 3")
    voices.set_input_files("#file", long)
    expect(voices.locator("#recorded")).to_have_text("The first 12 of 15.0 s are used")
    voices.fill("#name", "ava")
    voices.check("#consent")

    voices.click("#make")
    expect(voices.locator("#clone-problem")).to_contain_text("name already exists", timeout=SECONDS)
    voices.fill("#name", "Mine")
    voices.click("#make")
    voices.wait_for_url("**/console/*/voices?voice=voice_*", timeout=60_000)
    (clone,) = VoiceClone.objects.filter(organization=consoling.gateway.organization)
    assert clone.reference_seconds == 12.0
    consoling.problems[:] = [each for each in consoling.problems if "409" not in each]


def test_a_stream_can_be_stopped_while_it_still_plays(voices: Page) -> None:
    speak(voices, f"{TEXT} " * 12, "stream")
    expect(voices.locator("#say")).to_be_enabled()

    voices.click("#stop")

    expect(voices.locator("#stop")).to_be_hidden()
    expect(voices.locator("#sound")).to_be_visible()


def downloaded(page: Page, name: str) -> Path:
    with page.expect_download() as download:
        page.click(name)
    assert download.value.suggested_filename.endswith(".wav")
    return Path(download.value.path())


def test_the_last_texts_stay_in_the_browser_until_they_are_cleared_or_the_person_leaves(
    consoling: Visit, voices: Page, member: Person
) -> None:
    speak(voices, "Once upon a time.", "file")
    speak(voices, TEXT, "socket", "opus")
    lines = voices.locator("#history li")
    expect(lines).to_have_count(2)

    consoling.open("/console/voices")

    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text(TEXT)
    for scheme in ("light", "dark"):
        voices.emulate_media(color_scheme=scheme)
        assert serious_findings(voices) == []
    lines.nth(1).locator(".round").click()
    until(lambda: heard_seconds(voices.locator("#sampler")) > 0.3)
    lines.nth(1).locator("text=Use").click()
    assert voices.locator("#text").input_value() == "Once upon a time."
    file = downloaded(voices, "#history li:first-child >> text=Download")
    spoken = [row for row in rows(consoling) if row.transport == "websocket"]
    with wave.open(str(file)) as sound:
        assert sound.getnframes() / sound.getframerate() == pytest.approx(
            spoken[0].audio_ms / 1000, abs=0.2
        )
    assert len(rows(consoling)) == 2, "nothing was spoken again"

    voices.click("[data-forgets]")
    expect(voices.locator("#history")).to_be_hidden()
    speak(voices, "To be forgotten.", "file")
    expect(lines).to_have_count(1)
    voices.click("text=Log out")
    log_in(voices, consoling.gateway.url, member)
    consoling.open("/console/voices")
    voices.locator("[data-checked]").wait_for()
    expect(voices.locator("#history")).to_be_hidden()


def test_no_more_than_twenty_texts_of_one_person_and_organization_are_kept(voices: Page) -> None:
    kept = voices.evaluate("""async () => {
      const { History } = await import("/static/voices-history.js");
      const options = { section: document.getElementById("history"), sampler: new Audio(), rate: 24000 };
      const mine = new History({ ...options, owner: "me" });
      const theirs = new History({ ...options, owner: "them" });
      const one = { at: 0, voice: "ava", name: "ava", sounds: [], ending: "wav" };
      await theirs.add({ ...one, text: "theirs" });
      for (let number = 0; number < 22; number += 1) await mine.add({ ...one, text: `text ${number}` });
      const texts = [...document.querySelectorAll("#history .spoken-text")].map((each) => each.textContent);
      await theirs.show();
      return [texts, document.querySelectorAll("#history li").length];
    }""")

    assert kept == [[f"text {number}" for number in range(21, 1, -1)], 1]

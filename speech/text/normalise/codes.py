"""Writes out figures that are read digit by digit: telephone numbers, codes, cards, versions."""

# ruff: noqa: RUF001  # dashes are meant

from __future__ import annotations

import re

from speech.text.kinds import flights, telephones
from speech.text.normalise import names, numbers
from speech.text.normalise.locale import Locale, Region

_FREE = r"(?<![\w.,:/+$€£₹¥-])(?<!\d )"
_END = r"(?![\w/]|:\S|[.,-]\d| \d)"
_INTERNATIONAL = re.compile(rf"(?<![\w+])\+(?P<figure>\d[\d ().-]{{6,20}}\d){_END}")
_SHAPES = "|".join(
    (
        r"(?:1[-. ])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}",
        r"1[89]00[- ]\d{2,3}[- ]\d{3,4}",
        r"\(?0\d{1,4}\)?[- ]\d{3,4}[- ]?\d{3,4}",
        r"\d{5}[- ]\d{5}",
        r"[6-9]\d{3} \d{6}",
        r"\d{3}-\d{2}-\d{4}",
        r"\d{4}(?:[- ]\d{4}){2,7}(?:[- ]\d{1,3})?",
        r"(?:011[- ]|00[- ]?)\d{1,3}(?:[- ]\d{2,5}){2,4}",
        r"\d\d-\d{7}",
        r"555-\d{4}",
        r"(?=[\d-]*\d{5})\d{1,12}(?:-\d{1,12}){2,5}",
        r"0\d{2,11}-\d{1,12}",
        r"(?<=[A-Z]{2} )(?!\d{1,3} \d{3}(?! ?\d))\d{2,4}(?: \d{2,4}){1,4}",
    )
)
_SHAPED = re.compile(rf"{_FREE}(?P<figure>{_SHAPES}){_END}")
_PLAIN = {
    Region.US: re.compile(rf"{_FREE}(?P<figure>[2-9]\d{{2}}[2-9]\d{{4}}(?!00)\d\d){_END}"),
    Region.GB: re.compile(rf"{_FREE}(?P<figure>[6-9]\d{{7}}(?!00)\d\d){_END}"),
    Region.IN: re.compile(rf"{_FREE}(?P<figure>[6-9]\d{{7}}(?!00)\d\d){_END}"),
}
_WORDS = (
    r"train|flight|reg|call|phone|mobile|tel|fax|account|order|ticket|card|invoice|tracking|serial|id|ref|reference|"
    r"confirmation|booking|case|pnr|npi|mrn|imei|utr|a/c|aadhaar|number|no|ring|text|खाता|खाते|आधार|ट्रेन|नंबर|फ़ोन|फोन|मोबाइल|ऑर्डर|आईडी"
)
_SHORT_WORDS = r"(?:ending|ends)(?: in| with)?(?: [Xx*]{1,4}(?=\d{4}))?|card|pin|(?<!exit )(?<!return )code|otp|zip|zip code|passcode|password|extension|ext|helpline|hotline|पिन|पासकोड|कोड|ओटीपी|पासवर्ड"
_OF = r"(?:[.:#]| (?:code|number|no|id|is|कोड|नंबर|संख्या|है)\b){0,2}[.:]? ?[#-]?"
_NAMED = re.compile(
    rf"(?<!\w)(?P<before>(?:(?:{_WORDS}){_OF}(?=\d{{5}}|\d{{3,4}} \d{{3,4}} \d)|(?:{_SHORT_WORDS}){_OF}(?=\d{{3}}|\d\d[- ]\d\d)))"
    rf"(?P<figure>\d++(?:[ -]\d{{2,6}}(?!\d)){{0,3}}){_END}",
    re.IGNORECASE,
)
_MASK = re.compile(r"(?<= )[Xx*]{1,4}\Z")
_SHORT = re.compile(_SHORT_WORDS, re.IGNORECASE)
_LEADING_ZERO = re.compile(r"(?<![\w.,:/-])(?P<figure>0\d++)(?![\w:/]|[.,]\d)")
_FOUR_DIGITS = re.compile(
    r"(?P<before>\b(?:ISO|RFC|IEEE|DIN|Form|Model|Room|Flight|flight|Suite|Unit|Box|Bus|Route|Highway|Bulletin|Engine|Channel|[Pp]ort) )"
    r"(?P<figure>[1-9]\d{3})(?!\w|[.,-]\d)"
)
"""Numbers that are names: four digits in two halves."""
_ADDRESS = re.compile(
    r"(?<![\w.])(?P<figure>\d{1,3}(?:\.\d{1,3}){3})(?::(?P<port>\d{1,5})(?![\w:])|/(?P<mask>\d{1,2})(?!\w)|/(?P<path>[a-z][\w-]{0,40}(?:/[\w-]{1,40}){0,8}))?(?![\w]|\.\d)"
)
_STATES = "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]"
_ZIP = re.compile(
    rf"(?<=,) (?P<state>{_STATES}),? (?P<figure>\d{{5}}(?:-\d{{4}})?)(?![\w-])|\b(?P<alone>{_STATES}|NYC) (?P<five>\d{{5}})(?=\s*[,.;)]|\s*$)"
)
"""The ZIP code of an American address."""
_PIN_AFTER_DASH = re.compile(
    r"(?<=[\w)\u0900-\u097f.])\s?[-–]\s?(?P<figure>[1-8]\d{2}(?!000)\d{3})(?=\s*[,.;)।]|\s*$)"
)
_INDIAN_TRAIN = re.compile(
    r"(?<![\w.,/-])(?P<figure>[012]\d{4})(?= (?:[A-Z]\w+ ){0,4}(?:Rajdhani|Shatabdi|Duronto|Express|Exp|Mail|SF|Superfast|Passenger|Vande|Intercity|Garib)\b)"
)
_TRAIN_AFTER = re.compile(
    r"(?<=Express \()[012]\d{4}(?=\))|(?<=Express )(?P<figure>[012]\d{4})(?!\d)|(?<=Rajdhani )(?P<other>[012]\d{4})(?!\d)"
)
_INDIAN_PIN = re.compile(
    r"(?P<place>(?:(?<=, )|(?<=\w )(?=\S{2,20} ?[-–] ?\d)|(?<![^,\n])(?=\S{2,20} ?[-–] ?\d))(?:[A-Z][a-z]{2,20}|[\u0900-\u097f]{2,20}))"
    r",? ?[-–]? ?(?P<figure>[1-8]\d{2}(?!000)\d{3})(?=\s*[,.;)।]|\s*$)"
)
_SPACED_PIN = re.compile(
    r"(?P<place>\b[A-Z][a-z]{2,20})(?:\s?[-–]\s?|,? )(?P<figure>[1-8]\d{2} \d{3})(?=\s*[,.;)]|\s*$)"
)
_DOCKET = re.compile(
    r"(?P<before>\b(?:(?<!\ba )number|case|docket|नंबर) )(?P<one>\d{2,4})-(?P<two>\d{3,6})(?![\w-]|\.\d)",
    re.IGNORECASE,
)
_READ_OUT = re.compile(
    r"(?P<before>\btext (?:\S{1,20} )?to |(?<!\w)(?:[Xx]{2,12}|•{4}|\.{3}|…)[- ]?)(?P<figure>\d{4,6}|(?<=[Xx•][Xx•])\d{3})(?!\w|[.,-]\d)",
    re.IGNORECASE,
)
_STATE_PIN = re.compile(
    r"(?P<place>\b(?:A[PRS]|BR|C[GH]|DL|G[AJ]|H[PR]|J[HK]|K[AL]|M[HLNPZ]|NL|O[DR]|P[BY]|RJ|SK|T[GNRS]|U[KP]|WB))[ -]{1,3}(?P<figure>[1-8]\d{2}(?!000)\d{3})(?=\s*[,.;)]|\s*$)"
)
"""The PIN code of an Indian address after its state."""
_IBAN = re.compile(
    r"(?:(?<=\b[A-Z]{2}\d\d )|(?<=\b[A-Z]{2}\d\d [A-Z]{4} ))\d{4}(?: \d{4}){2,6}(?: \d{1,3})?(?![\w-])"
)
_PLATE = re.compile(
    r"(?<![\w-])(?P<named>[Nn]o\. ?)?(?P<state>[A-Z]{2})[ -]?(?P<district>\d{1,2}(?:[A-Z](?=[ -]))?)[ -]?(?P<series>[A-Z]{1,3})[ -]?(?P<figure>\d{4})(?![\w-])"
)
"""The number of an Indian vehicle."""
_HEXADECIMAL = re.compile(r"(?<![\w.,])0x[0-9a-fA-F]{1,16}(?!\w)")
_PRODUCTS = (
    "python|django|java|node|nodejs|php|ruby|go|golang|swift|kotlin|rust|ios|android|windows|macos|"
    "ubuntu|debian|fedora|postgresql|postgres|mysql|redis|chrome|firefox|typescript|react|angular|"
    "bluetooth|usb|http|tls|release|gpt|llama|claude|gemini|वर्ज़न|वर्शन"
)
_VERSION = re.compile(
    r"(?<![\w.])(?:(?P<v>v\.? ?|ver\.? ?|version )(?=\d))?+"
    r"(?P<figure>\d{1,6}(?:\.\d{1,6}){1,5})(?![\w]|\.\d)",
    re.IGNORECASE,
)
_PRODUCT = re.compile(rf"(?:{_PRODUCTS})[ -]\Z", re.IGNORECASE)
_VERSIONS = re.compile(
    rf"(?P<name>\b(?:{_PRODUCTS}) )(?P<first>v?\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})(?P<sign>\s?[-–]\s?|/)(?P<last>v?\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})(?![\w/.-]\w|\w)",
    re.IGNORECASE,
)
"""Several versions: ``Python 3.9-3.12``, ``Windows 10/11``."""
_BETWEEN_VERSIONS = re.compile(r"(?<=\d)\s?[-–—]\s?(?=v\d)")
_SCREEN = re.compile(
    r"(?<![\w.,])(?P<wide>[1-9]\d{3}) ?[x×] ?(?P<high>[1-9]\d{3})(?!\w|[.,]\d| ?[x×])"
)
"""Pixels of a screen, in two halves as they are named: 1920x1080."""
_NAMED_ROOM = re.compile(
    r"(?P<before>\b(?:[Rr]oom|[Rr]m|[Ff]light|[Rr]oute|[Hh]ighway|[Ii]nterstate|[Ss]uite|[Aa]partment|[Uu]nit|[Gg]ate|[Ee]rror|HTTP|[Ss]tatus|[Ee]xit|[Bb]us|[Ff]lat|[Cc]hannel|[Ee]xit code|Chem|Bio|Biology|Chemistry|Econ|Math|Maths|Physics|History|Psych|Calc|English|CS|Course|Psychology|Economics)"
    r"(?: number|:| status)?:? |\bI-|(?=\d0\d\([a-z]\)))(?P<figure>[1-9]0[1-9])(?!\w|[.,-]\d|/)"
)
"""Names with a zero between two digits: four oh four."""
_V_ALONE = re.compile(r"(?<![\w.])v(?P<figure>\d{1,3})(?![\w.,])")


def written_out(text: str, locale: Locale) -> str:
    """Write the figures of ``text`` that are names in words. Pass ``canonical`` figures."""
    if not any(map(str.isdecimal, text)):
        return text
    plus = "प्लस" if locale.is_hindi else "plus"
    text = _INTERNATIONAL.sub(lambda match: f"{plus} {_grouped(match['figure'], locale)}", text)
    text = _HEXADECIMAL.sub(lambda match: _hexadecimal(match[0], locale), text)
    text = flights.written_out(text, locale)
    text = telephones.services_written_out(text, locale)
    text = telephones.words_written_out(text, locale)
    text = _NAMED.sub(lambda match: _named(match, locale), text)
    text = _IBAN.sub(lambda match: _grouped(match[0], locale), text)
    text = _ZIP.sub(lambda match: _zip(match, locale), text)
    if locale.is_indian:
        text = _of_india(text, locale)
    for pattern in (_SHAPED, _PLAIN[locale.region]):
        text = pattern.sub(lambda match: _grouped(match["figure"], locale), text)
    text = _READ_OUT.sub(
        lambda match: (
            f"{match['before'].rstrip('-•.… ')} {numbers.digits(match['figure'], locale)}"
        ),
        text,
    )
    text = _DOCKET.sub(lambda match: _docket(match, locale), text)
    if not locale.is_hindi:
        text = _FOUR_DIGITS.sub(
            lambda match: match["before"] + numbers.year(int(match["figure"]), locale), text
        )
    text = _LEADING_ZERO.sub(lambda match: _grouped(match["figure"], locale), text)
    if not locale.is_hindi:
        text = _NAMED_ROOM.sub(
            lambda match: match["before"] + numbers.named(int(match["figure"]), locale), text
        )
        text = _SCREEN.sub(lambda match: _screen(match, locale), text)
    text = _BETWEEN_VERSIONS.sub(" से " if locale.is_hindi else " to ", text)
    text = _VERSIONS.sub(lambda match: _versions(match, locale), text)
    text = _ADDRESS.sub(lambda match: _address(match, locale), text)
    text = _VERSION.sub(lambda match: _version(match, locale), text)
    return _V_ALONE.sub(lambda match: f"{_called(locale)} {_part(match['figure'], locale)}", text)


def _of_india(text: str, locale: Locale) -> str:
    """Write the numbers of Indian vehicles, trains and places digit by digit."""
    text = _PLATE.sub(lambda match: _plate(match, locale), text)
    text = _INDIAN_TRAIN.sub(lambda match: numbers.digits(match["figure"], locale), text)
    text = _TRAIN_AFTER.sub(lambda match: numbers.digits(match[0], locale), text)
    text = _PIN_AFTER_DASH.sub(lambda match: f", {_grouped(match['figure'], locale)}", text)
    text = _STATE_PIN.sub(
        lambda match: f"{match['place']}, {_grouped(match['figure'], locale)}", text
    )
    text = _SPACED_PIN.sub(
        lambda match: f"{match['place']}, {_grouped(match['figure'], locale)}", text
    )
    return _INDIAN_PIN.sub(
        lambda match: f"{match['place']}, {_grouped(match['figure'], locale)}", text
    )


def _named(match: re.Match[str], locale: Locale) -> str:
    """Write out a code; a round figure after a verb ("call 10000 people") is a number."""
    before, figure = match["before"], match["figure"]
    if figure[0] != "0" and figure.endswith("000") and not _SHORT.match(before):
        return match[0]
    return _MASK.sub("", before) + _grouped(figure, locale)


def _grouped(figure: str, locale: Locale) -> str:
    found: list[str] = re.findall(r"\d+", figure)
    if len(found) == 1:
        found = _plain_groups(found[0], locale)
    return numbers.groups(found, locale)


def _plain_groups(figure: str, locale: Locale) -> list[str]:
    if len(figure) == 10 and locale.is_indian:
        return [figure[:5], figure[5:]]
    return numbers.chunked(figure)


def _zip(match: re.Match[str], locale: Locale) -> str:
    """The digits of a ZIP code after its state."""
    state, figure = match["state"] or match["alone"], match["figure"] or match["five"]
    named = state if locale.is_hindi else names.BY_LETTERS.get(state, state)
    return f"{' ' if match['state'] else ''}{named} {_grouped(figure, locale)}"


def _plate(match: re.Match[str], locale: Locale) -> str:
    district, figure = (numbers.digits(match[name], locale) for name in ("district", "figure"))
    if not match["district"][-1].isdecimal():
        district += f" {match['district'][-1]}"
    named = ("नंबर " if locale.is_hindi else "number ") if match["named"] else ""
    return f"{named}{match['state']} {district} {match['series']} {figure}"


def _docket(match: re.Match[str], locale: Locale) -> str:
    """A number of two parts, which is no range: the second has more digits."""
    one, two = match["one"], match["two"]
    if len(two) <= len(one) and two[0] != "0":
        return match[0]
    dash = "डैश" if locale.is_hindi else "dash"
    return f"{match['before']}{_part(one, locale)} {dash} {numbers.digits(two, locale)}"


def _address(match: re.Match[str], locale: Locale) -> str:
    said = _dotted(match["figure"], locale)
    if match["mask"]:
        slash = "स्लैश" if locale.is_hindi else "slash"
        return f"{said} {slash} {numbers.cardinal(int(match['mask']), locale)}"
    if match["path"]:
        slash = " स्लैश " if locale.is_hindi else " slash "
        return said + slash + slash.join(match["path"].split("/"))
    if not match["port"]:
        return said
    colon = "कोलन" if locale.is_hindi else "colon"
    return f"{said} {colon} {numbers.port(match['port'], locale)}"


def _dotted(figure: str, locale: Locale) -> str:
    dot = " डॉट " if locale.is_hindi else " dot "
    return dot.join(numbers.digits(part, locale) for part in figure.split("."))


def _called(locale: Locale) -> str:
    return "वर्ज़न" if locale.is_hindi else "version"


def _version(match: re.Match[str], locale: Locale) -> str:
    figure = match["figure"]
    named = _PRODUCT.search(match.string, max(0, match.start() - 16), match.start())
    if not match["v"] and figure.count(".") == 1 and not named:
        return match[0]
    said = pointed(figure, locale)
    return f"{_called(locale)} {said}" if match["v"] else said


def _screen(match: re.Match[str], locale: Locale) -> str:
    return " by ".join(numbers.year(int(match[name]), locale) for name in ("wide", "high"))


def _versions(match: re.Match[str], locale: Locale) -> str:
    first, last = (pointed(match[name].lstrip("vV"), locale) for name in ("first", "last"))
    word = ", " if match["sign"] == "/" else " से " if locale.is_hindi else " to "
    return f"{match['name']}{first}{word}{last}"


def pointed(figure: str, locale: Locale) -> str:
    return f" {numbers.point(locale)} ".join(_part(part, locale) for part in figure.split("."))


def _part(figure: str, locale: Locale) -> str:
    if len(figure) == 4 and figure.startswith("20"):
        # Versions that are named by their year.
        return numbers.year(int(figure), locale)
    if figure[0] == "0" or len(figure) > 3:
        return numbers.digits(figure, locale)
    return numbers.cardinal(int(figure), locale)


def _hexadecimal(figure: str, locale: Locale) -> str:
    return " ".join(numbers.digit(one, locale) if one.isdecimal() else one for one in figure)

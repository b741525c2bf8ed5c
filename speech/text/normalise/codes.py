"""Writes out figures that are read digit by digit: telephone numbers, codes, cards, versions.

At last it writes out tokens of letters and digits (CO2, COVID-19, 5G), and all remaining figures.
"""

# ruff: noqa: RUF001  # dashes are meant

from __future__ import annotations

import re

from speech.text.normalise import names, numbers
from speech.text.normalise.locale import Locale, Region
from speech.text.normalise.numbers import FIGURE

_FREE = r"(?<![\w.,:/+$€£₹¥-])(?<!\d )"
_END = r"(?![\w/]|:\S|[.,-]\d| \d)"
_INTERNATIONAL = re.compile(rf"(?<![\w+])\+(?P<figure>\d[\d ().-]{{6,20}}\d){_END}")
_SHAPES = "|".join(
    (
        r"(?:1[-. ])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}",
        r"1[89]00[- ]\d{2,3}[- ]\d{3,4}",
        r"\(?0\d{1,4}\)?[- ]\d{3,4}[- ]?\d{3,4}",
        r"\d{5}[- ]\d{5}",
        r"\d{3}-\d{2}-\d{4}",
        r"\d{4}(?:[- ]\d{4}){2,3}",
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
    r"confirmation|booking|case|pnr|a/c|aadhaar|number|no|ring|text|खाता|खाते|आधार|ट्रेन|नंबर|फ़ोन|फोन|मोबाइल|ऑर्डर|आईडी"
)
_SHORT_WORDS = r"(?:ending|ends)(?: in| with)?(?: [Xx*]{1,4}(?=\d{4}))?|card|pin|(?<!exit )(?<!return )code|otp|zip|zip code|passcode|password|extension|ext|पिन|पासकोड|कोड|ओटीपी|पासवर्ड"
_OF = r"(?:[.:#]| (?:code|number|no|id|is|कोड|नंबर|संख्या|है)\b){0,2}[.:]? ?[#-]?"
_NAMED = re.compile(
    rf"(?<!\w)(?P<before>(?:(?:{_WORDS}){_OF}(?=\d{{5}}|\d{{3,4}} \d{{3,4}} \d)|(?:{_SHORT_WORDS}){_OF}(?=\d{{3}}|\d\d[- ]\d\d)))"
    rf"(?P<figure>\d++(?:[ -]\d{{2,6}}(?!\d)){{0,3}}){_END}",
    re.IGNORECASE,
)
_MASK = re.compile(r"(?<= )[Xx*]{1,4}\Z")
_SHORT = re.compile(_SHORT_WORDS, re.IGNORECASE)
_EMERGENCY = re.compile(
    r"(?P<before>(?<!\w)(?:call|dial|dialled|dialed) )(?P<figure>911|112|999|100|101|102|108|411|311|988)(?![\w.,-]?\d|\w)"
    r"|(?<![\w.,])(?P<hindi>\d{3,5})(?= (?:डायल|मिला|पर (?:कॉल|फ़ोन|फोन|संपर्क)|par call|pe call))",
    re.IGNORECASE,
)
_LEADING_ZERO = re.compile(r"(?<![\w.,:/-])(?P<figure>0\d++)(?![\w:/]|[.,]\d)")
_FOUR_DIGITS = re.compile(
    r"(?P<before>\b(?:ISO|RFC|IEEE|DIN|Form|Model|Room|Flight|flight|Suite|Unit|Box|Bus|Route|Highway|Bulletin|Engine|Channel|[Pp]ort) )"
    r"(?P<figure>[1-9]\d{3})(?!\w|[.,-]\d)"
)
"""Numbers that are names: four digits in two halves."""
_ADDRESS = re.compile(
    r"(?<![\w.])(?P<figure>\d{1,3}(?:\.\d{1,3}){3})(?::(?P<port>\d{1,5})(?![\w:])|/(?P<mask>\d{1,2})(?!\w))?(?![\w]|\.\d)"
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
    r"(?<=Express )(?P<figure>[012]\d{4})(?!\d)|(?<=Rajdhani )(?P<other>[012]\d{4})(?!\d)"
)
_INDIAN_PIN = re.compile(
    r"(?P<place>(?:(?<=, )|(?<=\w )(?=\S{2,20} ?[-–] ?\d)|(?<![^,\n])(?=\S{2,20} ?[-–] ?\d))(?:[A-Z][a-z]{2,20}|[\u0900-\u097f]{2,20}))"
    r",? ?[-–]? ?(?P<figure>[1-8]\d{2}(?!000)\d{3})(?=\s*[,.;)।]|\s*$)"
)
_DOCKET = re.compile(
    r"(?P<before>\b(?:(?<!\ba )number|case|docket|नंबर) )(?P<one>\d{2,4})-(?P<two>\d{3,6})(?![\w-]|\.\d)",
    re.IGNORECASE,
)
_READ_OUT = re.compile(
    r"(?P<before>\btext (?:\S{1,20} )?to |(?<!\w)(?:[Xx]{2,12}|•{4})[- ]?)(?P<figure>\d{4,6})(?!\w|[.,-]\d)",
    re.IGNORECASE,
)
_PLATE = re.compile(
    r"(?<![\w-])(?P<named>[Nn]o\. ?)?(?P<state>[A-Z]{2})[ -]?(?P<district>\d{1,2})[ -]?(?P<series>[A-Z]{1,3})[ -]?(?P<figure>\d{4})(?![\w-])"
)
"""The number of an Indian vehicle."""
_TOLL_FREE = re.compile(r"(?<![\w+-])1-(?P<code>8(?:00|88|77|66|55|44|33|22))-(?=[A-Z]{2})")
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
_SCREEN = re.compile(
    r"(?<![\w.,])(?P<wide>[1-9]\d{3}) ?[x×] ?(?P<high>[1-9]\d{3})(?!\w|[.,]\d| ?[x×])"
)
"""Pixels of a screen, in two halves as they are named: 1920x1080."""
_NAMED_ROOM = re.compile(
    r"(?P<before>\b(?:[Rr]oom|[Rr]m|[Ff]light|[Rr]oute|[Hh]ighway|[Ii]nterstate|[Ss]uite|[Aa]partment|[Uu]nit|[Gg]ate|[Ee]rror|HTTP|[Ss]tatus|[Ee]xit|[Bb]us|[Ff]lat|[Cc]hannel|[Ee]xit code)"
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
    text = _NAMED.sub(lambda match: _named(match, locale), text)
    text = _EMERGENCY.sub(lambda match: _emergency(match, locale), text)
    text = _ZIP.sub(lambda match: _zip(match, locale), text)
    if locale.is_indian:
        text = _PLATE.sub(lambda match: _plate(match, locale), text)
        text = _INDIAN_TRAIN.sub(lambda match: numbers.digits(match["figure"], locale), text)
        text = _TRAIN_AFTER.sub(lambda match: numbers.digits(match[0], locale), text)
        text = _PIN_AFTER_DASH.sub(lambda match: f", {_grouped(match['figure'], locale)}", text)
        text = _INDIAN_PIN.sub(
            lambda match: f"{match['place']}, {_grouped(match['figure'], locale)}", text
        )
    for pattern in (_SHAPED, _PLAIN[locale.region]):
        text = pattern.sub(lambda match: _grouped(match["figure"], locale), text)
    text = _READ_OUT.sub(
        lambda match: f"{match['before'].rstrip('-• ')} {numbers.digits(match['figure'], locale)}",
        text,
    )
    text = _TOLL_FREE.sub(lambda match: _toll_free(match["code"], locale), text)
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
    text = _VERSIONS.sub(lambda match: _versions(match, locale), text)
    text = _ADDRESS.sub(lambda match: _address(match, locale), text)
    text = _VERSION.sub(lambda match: _version(match, locale), text)
    return _V_ALONE.sub(lambda match: f"{_called(locale)} {_part(match['figure'], locale)}", text)


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


def _emergency(match: re.Match[str], locale: Locale) -> str:
    return (match["before"] or "") + numbers.digits(match["figure"] or match["hindi"], locale)


def _toll_free(code: str, locale: Locale) -> str:
    """The figures of a telephone number whose rest is words."""
    said = numbers.cardinal(800, locale) if code == "800" else numbers.digits(code, locale)
    return f"{numbers.cardinal(1, locale)} {said} "


def _zip(match: re.Match[str], locale: Locale) -> str:
    """The digits of a ZIP code after its state."""
    state, figure = match["state"] or match["alone"], match["figure"] or match["five"]
    named = state if locale.is_hindi else names.BY_LETTERS.get(state, state)
    return f"{' ' if match['state'] else ''}{named} {_grouped(figure, locale)}"


def _plate(match: re.Match[str], locale: Locale) -> str:
    district, figure = (numbers.digits(match[name], locale) for name in ("district", "figure"))
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
    said = _pointed(figure, locale)
    return f"{_called(locale)} {said}" if match["v"] else said


def _screen(match: re.Match[str], locale: Locale) -> str:
    return " by ".join(numbers.year(int(match[name]), locale) for name in ("wide", "high"))


def _versions(match: re.Match[str], locale: Locale) -> str:
    first, last = (_pointed(match[name].lstrip("vV"), locale) for name in ("first", "last"))
    word = ", " if match["sign"] == "/" else " से " if locale.is_hindi else " to "
    return f"{match['name']}{first}{word}{last}"


def _pointed(figure: str, locale: Locale) -> str:
    return f" {numbers.point(locale)} ".join(_part(part, locale) for part in figure.split("."))


def _part(figure: str, locale: Locale) -> str:
    if figure[0] == "0" or len(figure) > 3:
        return numbers.digits(figure, locale)
    return numbers.cardinal(int(figure), locale)


_TOKEN = re.compile(
    r"(?<![\w.,])(?=[A-Za-z]{0,40}[-]?\d)(?!\d+(?![A-Za-z\d-]))[A-Za-z\d]++(?:-[A-Za-z\d]++)*+"
)
_JOINED = re.compile(r"(?<=[A-Za-z])-(?=\d+\.\d)")
_WITH_VERSION = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z]{2,12})(?P<figure>\d{1,3}(?:\.\d{1,3}){1,3})(?!\w|\.\d)"
)
"""A name and a version in one: ``python3.11``, ``PM2.5``."""
_ANY_VERSION = re.compile(r"(?<=\d)\.x(?!\w)")
_AFTER_WORD = re.compile(r"(?<=[a-z]{2})\.(?=\d{1,3}(?!\d))")
_HEXADECIMAL = re.compile(r"(?<![\w.,])0x[0-9a-fA-F]{1,16}(?!\w)")
_POINT_IN_NAME = re.compile(r"(?<=\b[A-Z])\.(?=\d)")
_PART = re.compile(r"\d++|[A-Z]{1,2}(?![A-Za-z])|[A-Za-z]++")
_SEVERAL = re.compile(r"(?P<one>[A-Z]{1,3}-?\d{1,2})s")
"""Several of one model: ``F-16s``."""
_LONG_TOKEN = 9
"""Characters from which a name of letters and digits is a code, read digit by digit."""
_ELEMENTS = (
    "H|He|Li|Be|B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|K|Ca|Cr|Mn|Fe|Co|Ni|Cu|Zn|Br|Ag|Sn|I|Ba|Au|Hg|Pb|U"
)
_FORMULA = re.compile(rf"(?:(?:{_ELEMENTS})\d{{0,2}}){{1,12}}\Z")
_ATOM = re.compile(
    rf"(?P<element>{'|'.join(sorted(_ELEMENTS.split('|'), key=len, reverse=True))})(?P<count>\d{{0,2}})"
)
_FIGURE = re.compile(FIGURE)


def remaining_written_out(text: str, locale: Locale) -> str:
    """Write every remaining digit of ``text`` in words. Apply it last."""
    if not any(map(str.isdecimal, text)):
        return text
    if "." in text:
        text = _ANY_VERSION.sub(f" {numbers.point(locale)} x", text)
        text = _WITH_VERSION.sub(lambda match: _with_version(match, locale), text)
        text = _AFTER_WORD.sub(f" {numbers.point(locale)} ", text)
    text = _JOINED.sub(" ", text)
    text = _POINT_IN_NAME.sub(" डॉट " if locale.is_hindi else " dot ", text)
    text = _TOKEN.sub(lambda match: _token(match[0], locale), text)
    return _FIGURE.sub(lambda match: _figure(match, locale), text)


def _token(token: str, locale: Locale) -> str:
    if not re.search("[A-Za-z]", token) or not re.search(r"\d", token):
        return token
    if len(token) <= 12 and re.search("[A-Z]", token) and _FORMULA.match(token):
        return _formula(token, locale)
    words: list[str] = []
    is_long = len(token) >= _LONG_TOKEN and "-" not in token
    if not locale.is_hindi and (several := _SEVERAL.fullmatch(token)):
        return numbers.plural(_token(several["one"], locale))
    for part in _PART.findall(token):
        if part.isdecimal():
            words.append(_in_token(part, locale, digits=is_long))
        elif part.isupper() and len(part) <= 2:
            words.append(" ".join(part))
        else:
            words.append(part)
    return " ".join(words)


def _with_version(match: re.Match[str], locale: Locale) -> str:
    name = match["name"]
    said = " ".join(name) if len(name) == 2 and name.isupper() else name
    return f"{said} {_pointed(match['figure'], locale)}"


def _formula(token: str, locale: Locale) -> str:
    """A chemical formula, letter by letter."""
    words: list[str] = []
    for atom in _ATOM.finditer(token):
        words += list(atom["element"].upper())
        if atom["count"]:
            words.append(_number(atom["count"], locale))
    return " ".join(words)


def _hexadecimal(figure: str, locale: Locale) -> str:
    return " ".join(numbers.digit(one, locale) if one.isdecimal() else one for one in figure)


def _in_token(figure: str, locale: Locale, *, digits: bool) -> str:
    """The figure of a name: digits in a long one, else four digits in two halves, as a year."""
    if digits:
        return numbers.digits(figure, locale)
    return (
        numbers.year(int(figure), locale)
        if re.match(r"[1-9]\d{3}\Z", figure)
        else _number(figure, locale)
    )


def _number(figure: str, locale: Locale) -> str:
    if len(figure) > 4 or (figure[0] == "0" and len(figure) > 1):
        return numbers.digits(figure, locale)
    return numbers.cardinal(int(figure), locale)


def _figure(match: re.Match[str], locale: Locale) -> str:
    """Write out a figure, with spaces between its words and adjacent letters."""
    text = match.string
    before = " " if match.start() and text[match.start() - 1].isalnum() else ""
    after = " " if text[match.end() : match.end() + 1].isalnum() else ""
    return f"{before}{numbers.spoken(match[0], locale)}{after}"

# ruff: noqa: RUF001  # signs that look like others are the point
"""Writes out signs of arithmetic and comparison, ranges, and other signs that mean a word."""

from __future__ import annotations

import re

from speech.text.language import WORD_END
from speech.text.normalise.locale import Locale, Region
from speech.text.normalise.numbers import FIGURE
from speech.text.normalise.rules import apply, rule

_LEFT = r"(?<=[\w\u0900-\u0963)\]%])"
"""The left operand of an operator."""
_RIGHT = r"(?=[-−√(\[$€£₹.]?[\w(]|[\"'{\[])"
_NUMBER = rf"(?P<number>[-−]?{FIGURE}(?:\s?[A-Za-zµ°%][A-Za-z/]{{0,4}}(?![\w^/]))?)"
_HINDI_COMPARED = tuple(
    # A run of blanks is read once, from its beginning; a run of digits too.
    rule(rf"(?<!\s)\s*+(?:{sign})\s*{_NUMBER}", "", rf" \g<number> {words} ")
    for sign, words in (
        ("≥|>=|⩾", "या उससे ज़्यादा"),
        ("≤|<=|⩽", "या उससे कम"),
        ("(?<![<>-])>(?![<>=])(?=\\s*[\\d.,]+ ?[°%a-zA-Z\u0900-\u097f])", "से ज़्यादा"),
        ("(?<![<>-])>(?![<>=])", "से बड़ा"),
        ("(?<![<>-])<(?![<>=-])", "से कम"),
    )
)
_PERCENT = re.compile(rf"(?<!\d)(?P<one>{FIGURE}) ?% ?(?P<to>[-–]) ?(?={FIGURE} ?%)")
_RANGES = (
    rule(r"(?<=\d)~(?=\d)|(?<=#\d)\s?[-–—]\s?(?=#\d)|(?<=#\d\d)\s?[-–—]\s?(?=#\d)", " to ", " से "),
    rule(
        r"(?<![\w.,/^-])(?P<one>\d{1,3})[-–](?P<two>\d{1,3})(?=[x×](?!\w))",
        r"\g<one> to \g<two>",
        r"\g<one> से \g<two>",
    ),
    rule(
        r"(?<![\w.,/-])(?P<one>\d{1,3})[-–](?P<two>\d{1,3})-(?=(?:day|hour|week|month|year|minute|second|mile|foot|feet|inch|page|person|star|point|game|night|pound|bedroom|storey|story|step|acre|man|way|member|seat|door|piece|course|part|digit|letter|word|hr|min|yr|km|kg|lb)\b)",
        r"\g<one> to \g<two> ",
        r"\g<one> से \g<two> ",
    ),
    rule(
        r"(?<![\w.,/-])(?P<one>\d0)-(?=\d0 (?:rule|split|ratio|mix|blend|principle|chance|deal|partnership)\b)",
        r"\g<one> ",
        r"\g<one> ",
    ),
    rule(
        r"(?<![\w.,/:^+=*-])(?<![+=*×÷^] )(?P<one>\d++(?:,\d{2,3}(?!\d))*+(?:\.\d+)?+%?)\s?[–—]\s?(?P<two>\d++(?:,\d{2,3}(?!\d))*+(?:\.\d+)?+)(?![\w-])(?!\s?=)",
        r"\g<one> to \g<two>",
        r"\g<one> से \g<two>",
    ),
    rule(
        r"(?<![\w.,/:^+=*-])(?P<one>\d++(?:,\d{2,3}(?!\d))*+(?:\.\d+)?+%?)-(?P<two>\d++(?:,\d{2,3}(?!\d))*+(?:\.\d+)?+)(?![\w-])(?!\s?=)",
        r"\g<one> to \g<two>",
        r"\g<one> से \g<two>",
    ),
    rule(
        r"(?<![\w-])(?P<one>[A-Z])[-–](?P<two>[A-Z])(?![\w-])",
        r"\g<one> to \g<two>",
        r"\g<one> से \g<two>",
    ),
    rule(
        r"(?<![\w-])(?P<one>(?P<kind>[A-Z]{1,3})\d{1,4})\s?[-–]\s?(?=(?P=kind)\d{1,4}(?![\w-]))",
        r"\g<one> to ",
        r"\g<one> से ",
    ),
)
_JUNCTIONS = re.compile(r"(?<![\w-])(?P<one>[A-Z]\d{1,3})[-–](?P<two>\d{1,3})(?![\w-]|[.,]\d)")
_SCORE = re.compile(r"(?<![\w.,/:^+=*-])(?P<one>\d)-(?P<two>\d)(?![\w-])(?!\s?=)")
_NIL = re.compile(r"(?<![\w.,/:^+=*$€£-])(?P<goals>[1-9])[-–]0(?![\w.-]|\s?=)")
_NIL_NIL = re.compile(r"(?<![\w.,/:^+=*$€£-])0[-–]0(?![\w.-]|\s?=)")
"""Scores of British football."""
_ROWS = re.compile(r"(?<![\w.,/-])\d{1,4}(?:-\d{1,4}){2,8}(?![\w-])")
COMPARISONS = (
    rule(
        r"\b(?P<who>I|[Ww]e|[Tt]hey|[Yy]ou|u|i) <3+ (?=[A-Za-z])",
        r"\g<who> love ",
        r"\g<who> love ",
    ),
    rule(
        r"\b(?P<last>you|u|all|guys|everyone|much|thanks|friends|team)(?P<mark>[.!,]?) <3+(?=[\s.!]*$)",
        r"\g<last>\g<mark>",
        r"\g<last>\g<mark>",
    ),
    rule(r"\b(?P<zone>GMT|UTC) ?[-−](?=\d)", r"\g<zone> minus ", r"\g<zone> माइनस "),
    rule(r"&&", " and ", " और "),
    rule(r"(?<=\S) ?\|\| ?(?=\S)", " or ", " या "),
    rule(r"±|\+/-|\+-(?=\d)", " plus or minus ", " प्लस माइनस "),
    rule(r"≥|>=|⩾", " greater than or equal to ", " बड़ा या बराबर "),
    rule(r"≤|<=|⩽", " less than or equal to ", " छोटा या बराबर "),
    rule(r"≠|!=|=/=", " not equal to ", " बराबर नहीं "),
    rule(r"≈|≅|(?<!\w)~(?=\s?[\d$€£₹])", " approximately ", " लगभग "),
    rule(
        r"(?<=[\])])\s+>\s+(?=\w)|(?<![<>-])>(?=\s?(?:[\d$€£₹-]|\.\d))|(?<=\b\w)\s+>\s+(?=\w)|(?<=\w)\s+>\s+(?=[\w](?!\w))",
        " greater than ",
        " बड़ा ",
    ),
    rule(
        r"(?<=[\])])\s+<\s+(?=\w)|(?<![<>])<(?=\s?(?:[\d$€£₹]|\.\d))|(?<=\b\w)\s+<\s+(?=\w)|(?<=\w)\s+<\s+(?=[\w](?!\w))",
        " less than ",
        " से कम ",
    ),
)
MATHS = (
    rule(r"(?<![\w/])(?P<one>[a-z])/(?P<two>[a-z])(?=\s?=)", r"\g<one> over \g<two>", r"\g<one> बटा \g<two>"),
    rule(r"\bPr?\((?P<of>[^()|]{1,40})\|(?P<given>[^()|]{1,40})\)", r"P of \g<of> given \g<given>", r"P of \g<of> given \g<given>"),
    rule(r"(?<![\w.,])(?P<one>\d++\.\d++(?=[eE][-+]?\d)|\d++(?=e[-+]?\d|E[-+]\d))[eE]\+?(?P<ten>\d{1,3})(?![\w.]\w|\w)", r"\g<one> times 10 to the power of \g<ten>", r"\g<one> गुणा 10 की घात \g<ten>"),
    rule(r"(?<![\w.,])(?P<one>\d++\.\d++(?=[eE]-)|\d++(?=e-|E-\d\d?(?!\d)))[eE]-(?P<ten>\d{1,3})(?![\w.]\w|\w)", r"\g<one> times 10 to the power of minus \g<ten>", r"\g<one> गुणा 10 की घात माइनस \g<ten>"),
    rule(r"(?:(?<=\d)|(?<=\b[a-z])|(?<=\)))!(?=\s?[=+*/×÷^−])", " factorial", " फ़ैक्टोरियल"),
    rule(r"(?<![\w-])(?P<one>\d{1,4}[a-z]) [-−] (?=\d{1,4}[a-z](?!\w))", r"\g<one> minus ", r"\g<one> माइनस "),
    rule(r"(?<![\w-])(?P<one>\d{1,4}[xyzn]) [-−] (?=\d{1,4}(?!\w)|[a-z](?!\w))", r"\g<one> minus ", r"\g<one> माइनस "),
    rule(r"∛\s*(?=[\da-z(])", " the cube root of ", " घनमूल "),
    rule(r"∜\s*(?=[\da-z(])", " the fourth root of ", " चतुर्थ मूल "),
    rule("(?P<letter>[A-Za-z])\u0304", r"\g<letter> bar", r"\g<letter> बार"),
    rule("(?P<letter>[A-Za-z])\u0302", r"\g<letter> hat", r"\g<letter> हैट"),
    rule(r"\blog(?P<base>2|10|e|[a-z](?=\())_? ?(?=\(|\d|[a-z]\b)", r"log base \g<base> ", r"log base \g<base> "),
    rule(r"\blim(?:_\{?)? ?\(?(?P<of>[a-z]) ?(?:→|->) ?", r"the limit as \g<of> approaches ", r"limit \g<of> "),
    rule(r"(?:(?<=\b[a-zA-Z])|(?<=\d))(?:″|′′|'')(?=\()", " double prime ", " double prime "),
    rule(r"(?<=\b[a-zA-Z])[′'](?=\(| ?=)", " prime ", " prime "),
    rule(r"√\s*(?P<of>\d++(?:[.,]\d++)*+|[a-zA-Z](?!\w)|(?=\())", r" the square root of \g<of> ", r" \g<of> का वर्गमूल "),
    rule(r"(?<=[A-Za-z)\]])\^(?P<charge>\d?)\+(?![\w(])", r" \g<charge> plus ", r" \g<charge> प्लस "),
    rule(r"(?<=[A-Za-z)\]])\^(?P<charge>\d?)-(?![\w(])", r" \g<charge> minus ", r" \g<charge> माइनस "),
    rule(r"\bsin(?=\s?\^|\(|\s?[θxα]\b)", "sine", "sine"),
    rule(r"\bcos(?=\s?\^|\(|\s?[θxα]\b)", "cosine", "cosine"),
    rule(r"(?<=[\w)])\s*\^\s*\(?2\)?(?!\d|\.\d)", " squared ", " का वर्ग "),
    rule(r"(?<=[\w)])\s*\^\s*\(?3\)?(?!\d|\.\d)", " cubed ", " का घन "),
    rule(r"(?<![\w|])\|(?P<of>-?\w{1,3}(?: ?[-+−*/] ?\w{1,3}){0,3})\|(?![\w|])", r" the absolute value of \g<of> ", r" \g<of> का निरपेक्ष मान "),
    rule(r"(?<![\w./-])(?P<one>\d{1,3})/(?P<two>[xnyzrt])(?![\w/-])", r"\g<one> over \g<two>", r"\g<one> बटा \g<two>"),
    rule(r"(?<!\w)d(?P<one>[a-z])/d(?P<two>[a-z])(?!\w)", r"d \g<one> d \g<two>", r"d \g<one> d \g<two>"),
    rule(r"(?<=[\w)])\s*\^\s*(?=[-−(]?\w)|(?<=\d)\*\*(?=[-\d])", " to the power of ", " की घात "),
    rule(r"(?<=\w) ?\+= ?(?=\w)", " plus equals ", " प्लस बराबर "),
    rule(r"(?<=\b[a-z])--(?!\w)", " minus minus ", " माइनस माइनस "),
    rule(r"(?<=\w) ?-= ?(?=\w)", " minus equals ", " माइनस बराबर "),
    rule(r"(?<=\w)→(?=\w)", " to ", " से "),
    rule(r"(?<=\))\s?/\s?(?=\d|\(|[a-z]\b)", " over ", " बटा "),
    rule(r"(?<= squared )/ ?(?=[\da-z(])|(?<= cubed )/ ?(?=[\da-z(])", "over ", "बटा "),
    rule(r"\s(?:->|=>|-->|→|⇒|➜)\s", " to ", " से "),
    rule(r"(?<=\d)-(?=\d+\s?=)", " minus ", " माइनस "),
    rule(r"(?<=\b[a-z]) [*·⋅∙] (?=[\da-z(])", " times ", " गुणा "),
    rule(r"(?<=\^\d)\s+[-−–]\s+(?=[\da-z(])|(?<= squared)\s+[-−–]\s+(?=[\da-z(])|(?<= cubed)\s+[-−–]\s+(?=[\da-z(])", " minus ", " माइनस "),
    rule(rf"{_LEFT}\s*={{1,3}}\s*{_RIGHT}", " equals ", " बराबर "),
    rule(rf"{_LEFT}\s*×\s*{_RIGHT}", " times ", " गुणा "),
    rule(r"(?<=\d)x(?=\d)", " by ", " बाय "),
    rule(r"(?<=\d)[x×](?=\s?/\s?(?:day|week|wk|month|mo|year|yr|hr)\b)", " times", " बार"),
    rule(r"(?<=\d\d\d)\s+x\s+(?=\d{3})", " by ", " बाय "),
    rule(r"(?<=\d)\s+x\s+(?=\d)", " times ", " गुणा "),
    rule(r"(?<=\d)[x×](?=\s(?:faster|slower|more|less|better|cheaper|larger|bigger|smaller|as|the|higher|lower)\b)", " times ", " गुना "),
    rule(r"(?<=[\d)])(?:\s+[*·⋅∙]\s+|[*·⋅∙])(?=[\d(√a-zA-Z-])", " times ", " गुणा "),
    rule(rf"{_LEFT}\s*÷\s*{_RIGHT}", " divided by ", " भाग "),
    rule(r"(?<=[\d)])\s+/\s+(?=[\d(])", " divided by ", " भाग "),
    rule(r"(?<=\d)\s+[-−–]\s+(?=[\d(])|(?<=[\d\w]\))\s+[-−]\s+(?=\d{1,3}(?!\d)|\()", " minus ", " माइनस "),
    rule(r"(?<![\w-])(?P<one>[a-zA-Z]) [-−] (?=[\da-zA-Z](?!\w))", r"\g<one> minus ", r"\g<one> माइनस "),
    rule(r"(?<![\w)\]-])[-−](?=\.?\d)", " minus ", " माइनस "),
    rule(r"−", " minus ", " माइनस "),
    rule(r"∞", " infinity ", " अनंत "),
    rule(r"∑ ?(?=from\b)", " the sum ", " योग "),
    rule(r"∑", " the sum of ", " का योग "),
    rule(r"∫", " the integral of ", " समाकल "),
    rule(r"∠", " angle ", " कोण "),
    rule(r"∂", " partial ", " पार्शल "),
    rule(r"∇", " nabla ", " नाब्ला "),
    rule(r"∈", " in ", " में "),
    rule(r"∉", " not in ", " में नहीं "),
    rule(r"∀", " for all ", " सभी "),
    rule(r"∃", " there exists ", " अस्तित्व में है "),
    rule(r"∪", " union ", " यूनियन "),
    rule(r"∩", " intersection ", " इंटरसेक्शन "),
    rule(r"[⊂⊆]", " subset of ", " का उपसमुच्चय "),
    rule(r"∅", " the empty set ", " रिक्त समुच्चय "),
    rule(r"∝", " proportional to ", " के समानुपाती "),
    rule(r"∴", " therefore ", " इसलिए "),
    rule(r"⊥", " perpendicular to ", " लंबवत "),
    rule(r"∥", " parallel to ", " समांतर "),
)  # fmt: skip
_EQUATIONS = (
    rule(r"(?:(?<=[=(,] )|(?<=[=(,]))[-−](?=\d{0,3}[a-z]\b)", " minus ", " माइनस "),
    rule(
        r"(?<![\w/])(?!N/A|A/C|I/O|w/o)(?P<one>\d?[A-Za-z])/(?P<two>\d?[A-Za-z])(?![\w/-])",
        r"\g<one> over \g<two>",
        r"\g<one> बटा \g<two>",
    ),
)
"""Signs that mean arithmetic only in an equation."""
_GREEK = {
    "α": ("alpha", "अल्फ़ा"), "β": ("beta", "बीटा"), "γ": ("gamma", "गामा"), "δ": ("delta", "डेल्टा"),
    "ε": ("epsilon", "एप्सिलॉन"), "ζ": ("zeta", "ज़ीटा"), "η": ("eta", "ईटा"), "θ": ("theta", "थीटा"),
    "κ": ("kappa", "कप्पा"), "λ": ("lambda", "लैम्ब्डा"), "μ": ("mu", "म्यू"), "ν": ("nu", "न्यू"),
    "ξ": ("xi", "ज़ाई"), "π": ("pi", "पाई"), "ρ": ("rho", "रो"), "σ": ("sigma", "सिग्मा"),
    "τ": ("tau", "टाऊ"), "φ": ("phi", "फ़ाई"), "χ": ("chi", "काई"), "ψ": ("psi", "साई"),
    "ω": ("omega", "ओमेगा"),
}  # fmt: skip
_LETTER = re.compile(
    rf"(?<![\u0370-\u03ff])[{''.join(_GREEK)}{''.join(_GREEK).upper()}](?![\u0370-\u03ff])"
)
"""A Greek letter that is a sign and in no Greek word."""
_EQUATION = re.compile(r"[=^√]|\bx\b|\dx [-+−]")
_TIMES = re.compile(r"(?<=\d)[x×](?=\s[a-z\u0900-\u097f]|[.,;:!?)]|\s*$)")
"""``12x since``, which in an equation is a variable."""
_COUNTED = r"(?<=[a-z\d\u0900-\u097f])\s?/\s?"
WORDS = (
    rule(r"(?<!\w)[yY]/[yY](?!\w)", "year over year", "साल दर साल"),
    rule(r"(?<!\w)[mM]/[mM](?!\w)", "month over month", "महीने दर महीने"),
    rule(r"(?<!\w)[qQ]/[qQ](?!\w)", "quarter over quarter", "तिमाही दर तिमाही"),
    rule(r"(?<!\w)\\(?=[a-zA-Z][+*?]?(?!\w))", "backslash ", "बैकस्लैश "),
    rule(r"(?<=\w)~(?=\w)", " tilde ", " टिल्ड "),
    rule(r"(?<!\w)w/o(?!\w)", "without", "के बिना"),
    rule(r"(?<!\w)w/(?=\s?\w)", "with ", "के साथ "),
    rule(r"(?<!\w)[nN]/[aA](?!\w)", "not applicable", "लागू नहीं"),
    rule(r"(?<!\w)c/o(?!\w)", "care of", "द्वारा"),
    rule(rf"{_COUNTED}km{WORD_END}", " per kilometre", " प्रति किलोमीटर"),
    rule(rf"{_COUNTED}sh{WORD_END}", " per share", " प्रति शेयर"),
    rule(rf"{_COUNTED}mi{WORD_END}", " per mile", " प्रति मील"),
    rule(rf"{_COUNTED}mo(?:nth)?{WORD_END}", " per month", " प्रति माह"),
    rule(rf"{_COUNTED}wks?{WORD_END}\.?", " per week", " प्रति हफ़्ता"),
    rule(rf"{_COUNTED}ye?a?r{WORD_END}", " per year", " प्रति वर्ष"),
    rule(rf"{_COUNTED}(?:hr|hour|h){WORD_END}", " per hour", " प्रति घंटा"),
    rule(rf"{_COUNTED}min(?:ute)?{WORD_END}", " per minute", " प्रति मिनट"),
    rule(rf"{_COUNTED}sec(?:ond)?{WORD_END}", " per second", " प्रति सेकंड"),
    rule(rf"{_COUNTED}(?=(?:day|week|night|person|user|unit|item|piece|head|kg|km|दिन|माह|महीना|महीने|साल|वर्ष|घंटा|घंटे|व्यक्ति|किलो){WORD_END})", " per ", " प्रति "),
    rule(r"\bC\+\+", "C plus plus", "C प्लस प्लस"),
    rule(r"\b(?P<note>[CF])#(?!\w)", r"\g<note> sharp", r"\g<note> शार्प"),
    rule(r"(?<!\w)#\s?(?=\d)", "number ", "नंबर "),
    rule(r"№\s?|\b[Nn]o\.\s?(?=\d|[A-Z]{2,3}[ -]?\d)", "number ", "नंबर "),
    rule(r"§§\s?", "sections ", "धारा "),
    rule(r"§\s?", "section ", "धारा "),
    rule(r"©", " copyright ", " कॉपीराइट "),
    rule(r"[®™℠]", "", ""),
    rule(r"&", " and ", " और "),
    rule(r"(?<=\w)@(?=\w)|\s@\s|(?<![\w@])@(?=\s?[\w$€£₹.])|(?<=['’\"])@(?=['’\"%\w])", " at ", " ऐट "),
    rule(r"\+", " plus ", " प्लस "),
    rule(r"%", " percent ", " प्रतिशत "),
    rule(r"¢", " cents ", " सेंट "),
    rule(r"°", " degrees ", " डिग्री "),
    rule(r"(?<=\d)/(?=\d)", " slash ", " बटा "),
    rule(r"\s(?:/|\||>)\s", ", ", ", "),
    rule(r"(?<=\w)[/\\|_](?=\w)", " ", " "),
    rule(r"[*^_|\\<>#~=`@/←→⇒•·]+", " ", " "),
)  # fmt: skip


_NO_COMPARISON = re.compile(r"[^<>±≥≤⩾⩽≠≈≅~+!&|=%−-]*")
_NO_MATHS = re.compile(r"(?:[\w\s,;:.?'’\"(){}\[\]%$€£₹¥&@#]|-(?![.=>]))*+")
_NO_SIGN = re.compile(r"(?:[^\W_]|[\s,;:.!?'’\"()\[\]{}$€£₹¥…।“”‘–—-])*")
"""Texts without any sign of the tables, which are most: their rules are not tried one by one."""


def comparisons_written_out(text: str, locale: Locale) -> str:
    """Write the signs before an amount in words; the amount itself is written out later."""
    if _NO_COMPARISON.fullmatch(text):
        return text
    if "%" in text:
        # One measure: 10-15%.
        text = _PERCENT.sub(r"\g<one>\g<to>", text)
    if locale.is_hindi:
        text = apply(_HINDI_COMPARED, text, locale)
    return apply(COMPARISONS, text, locale)


def ranges_written_out(text: str, locale: Locale) -> str:
    """Write ``5-10`` as ``5 to 10``, and remove the dashes of rows such as 4-4-2."""
    if locale.region is Region.GB:
        text = _NIL.sub(r"\g<goals> nil", text)
        text = _NIL_NIL.sub("nil nil", text)
    if locale.is_hindi:
        text = _SCORE.sub(_score, text)
    text = _JUNCTIONS.sub(lambda match: _junctions(match, locale), text)
    text = apply(_RANGES, text, locale)
    return _ROWS.sub(lambda match: match[0].replace("-", " "), text)


def _junctions(match: re.Match[str], locale: Locale) -> str:
    """A range of numbered things that rises: J25-26."""
    if int(match["two"]) <= int(match["one"][1:]):
        return match[0]
    return f"{match['one']} {'से' if locale.is_hindi else 'to'} {match['two']}"


def _score(match: re.Match[str]) -> str:
    """Write out a score, a pair of digits that does not rise; Hindi puts no word between."""
    return f"{match['one']} {match['two']}" if match["one"] >= match["two"] else match[0]


def maths_written_out(text: str, locale: Locale) -> str:
    """Write the signs between figures in words and keep the figures."""
    if not text.isascii():
        text = text.replace("/Δ", " over Δ" if not locale.is_hindi else " बटा Δ")
        text = _LETTER.sub(lambda match: f" {_greek(match[0], locale)} ", text)
    if text.isascii() and not any(map(str.isdecimal, text)) and _NO_MATHS.fullmatch(text):
        return text
    if not _EQUATION.search(text):
        text = _TIMES.sub(" गुना" if locale.is_hindi else " times", text)
    if "=" in text:
        text = apply(_EQUATIONS, text, locale)
    return apply(MATHS, text, locale)


def _greek(letter: str, locale: Locale) -> str:
    english, hindi = _GREEK[letter.lower()]
    return hindi if locale.is_hindi else english


def others_written_out(text: str, locale: Locale) -> str:
    """Write the remaining signs in words, or remove those that are not spoken."""
    return text if _NO_SIGN.fullmatch(text) and "o." not in text else apply(WORDS, text, locale)

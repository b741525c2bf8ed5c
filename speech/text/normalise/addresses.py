"""Web and e-mail addresses, file names, handles and hashtags as people read them out.

The scheme, ``www``, query and fragment of a web address are left out: no listener can follow them.
"""

from __future__ import annotations

import re

from speech.text.kinds import programs
from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_TLDS = (
    "com|org|net|edu|gov|mil|int|info|biz|dev|app|io|ai|co|me|tv|in|uk|us|eu|de|fr|jp|au|ca|xyz|"
    "tech|cloud|online|site|store|example|test|ly|gg|sh|so|news|blog|shop|nic"
)
_FILES = "js|ts|py|md|txt|pdf|json|csv|html|css|exe|zip|png|jpg|jpeg|mp3|mp4|wav|doc|docx|xls|xlsx|xml|yaml|toml|net|java|go|rs|rb|php|cpp|cs|kt|swift|sh|sql|log|ini|cfg|conf|lock|vue|jsx|tsx|ipynb|bat|bak|gz|tar|"
_FILES += "svg|gif|webp|ppt|pptx|odt|rtf|tex|apk|iso|dmg|deb|rpm|jar|dll|yml|env|tgz|c|h"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{1,8}}"
_ANY_LABEL = r"[^\W_](?:[^\W_]|-){0,62}"
"""A label in letters of any script: ``info@münchen.de``."""
_TAIL = r"(?::(?P<port>\d{1,5}))?(?P<path>(?:/[^\s?#<>\"'()\[\]{}|,;]{0,2000})?)(?:[?#][^\s<>\"'()\[\]{}|]{0,2000})?"
_MAIL = re.compile(
    rf"(?<![\w.+@-])(?:mailto:)?(?P<user>[A-Za-z0-9][\w.+-]{{0,63}})@(?![\d.^]{{1,20}}(?!\w))(?P<host>{_ANY_LABEL}(?:\.{_ANY_LABEL}){{1,8}})(?![\w@])"
)
_URL = re.compile(
    rf"(?<![\w@])(?:[a-zA-Z][a-zA-Z\d]{{1,9}}://|www\.)(?:www\.)?(?P<host>{_LABEL}(?:\.{_LABEL}){{0,8}}){_TAIL}"
)
_BARE = re.compile(
    rf"(?<![\w@.-])(?P<host>{_LABEL}(?:\.{_LABEL}){{0,6}}\.(?:{_TLDS}))(?![\w-]|\.\w){_TAIL}"
)
_LINK = re.compile(
    rf"(?<![\w@./-])(?P<host>[a-z0-9][a-z0-9-]{{0,40}}(?:\.[a-z0-9-]{{1,40}}){{0,2}}\.[a-z]{{2,3}}(?=/[\w-])){_TAIL}"
)
"""A host of any country with a path: ``youtu.be/x1``."""
_ROOT = re.compile(r"(?<![^\s(\"'`])(?<!or )(?<!he )/(?P<name>[a-z][\w-]{2,40})(?![\w/])")
"""A path of one name: ``/about``."""
_FORUM = re.compile(r"(?<![\w/.])(?P<kind>[ru])/(?P<name>[A-Za-z]\w{2,30})(?![\w/])")
_FILE = re.compile(
    rf"(?<![\w@.])(?P<name>[A-Za-z][\w-]{{0,63}})\.(?P<ending>{_FILES})(?!\w|\.[A-Z])"
)
_RELATIVE = re.compile(
    rf"(?<![\w@./:-])(?P<folder>(?:[A-Za-z_][\w.-]{{0,63}}/){{1,8}})(?P<name>[A-Za-z_][\w-]{{0,63}})\.(?P<ending>{_FILES})(?![\w/]|\.[A-Z])"
)
"""A file in a folder: ``app/views.py``."""
_LINE_NUMBER = re.compile(
    r"(?<![\w@.])(?P<file>[A-Za-z_][\w/-]{0,63}\.(?:java|py|js|ts|tsx|jsx|go|rs|rb|php|cpp|cs|kt|c|h))(?P<lines>(?::\d{1,6}){1,2}):?(?!\w)"
)
_IDENTIFIER = r"[A-Za-z_][\w$]{1,63}"
_CODE_NAME = re.compile(
    rf"(?<![\w./@-])(?:{_IDENTIFIER}(?:\.{_IDENTIFIER}){{2,8}}|{_IDENTIFIER}\.(?:{_IDENTIFIER}(?=\()|[A-Z][a-z]+[A-Z]\w{{0,60}}))(?![\w@]|\.\w)"
)
"""A dotted name of a program: ``java.lang.String``, ``foo.bar()``."""
_HANDLE = re.compile(r"(?<![\w@.])@(?P<name>[A-Za-z_]\w{0,63})")
_TAG = re.compile(
    r"(?<![\w#&])#(?!\d{2,12}[A-Z]{1,2}(?!\w)|\d[A-CEFH](?!\w)|[A-Z]{1,4}\d*-[A-Z\d]*\d)(?P<name>(?=\w*[^\W\d_])\w{1,100})"
)
_LOCAL = re.compile(
    r"(?<![\w@./-])localhost:(?P<port>\d{1,5})(?!\d)(?P<path>(?:/[^\s?#<>\"'()\[\]{}|,;]{0,2000})?)"
)
_SEGMENT = r"[A-Za-z0-9_.-]{1,64}"
_FILE_PATH = re.compile(
    rf"(?<![\w./:~=&?#%@-])(?:(?P<start>~|\.{{1,2}})(?=/{_SEGMENT})|(?=/[A-Za-z_.]{_SEGMENT}/\w))"
    rf"(?P<path>(?:/{_SEGMENT}){{1,16}})/?(?![\w/])"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PIECE = re.compile(r"\d++|[^\W\d_]++|[^\w\s]|_")
_SPELLED = frozenset(
    [
        "etc",
        "io",
        "ai",
        "uk",
        "us",
        "tv",
        "eu",
        "jp",
        "js",
        "ts",
        "py",
        "md",
        "pdf",
        "csv",
        "html",
        "css",
        "xml",
    ]
)
_NAMES = {"json": "jason", "yaml": "yammel", "toml": "tom L", "xls": "X L S", "xlsx": "X L S X"}
_SIGNS = {
    ":": ("colon", "कोलन"), ".": ("dot", "डॉट"), "/": ("slash", "स्लैश"), "@": ("at", "ऐट"), "+": ("plus", "प्लस"),
    "_": ("underscore", "अंडरस्कोर"), "-": ("dash", "डैश"), "&": ("and", "और"),
    "~": ("tilde", "टिल्ड"), "=": ("equals", "बराबर"), "%": ("percent", "प्रतिशत"),
}  # fmt: skip
_HASHTAG = ("hashtag", "हैशटैग")
_AT = ("at", "ऐट")


def written_out(text: str, locale: Locale) -> str:
    """``text`` with its addresses, and the signs of its programs, as words."""
    in_program = programs.is_meant(text)
    if "/" in text:
        text = text.replace("file:///", "file /")
        slash = _SIGNS["/"][locale.is_hindi]
        text = _FORUM.sub(rf"\g<kind> {slash} \g<name>", text)
        text = _ROOT.sub(rf"{slash} \g<name>", text)
        text = _FILE_PATH.sub(lambda match: _file_path(match, locale), text)
    if "@" in text:
        text = _MAIL.sub(lambda match: _mail(match, locale), text)
    if "." in text:
        for pattern in (_URL, _BARE, _LINK) if "/" in text else (_URL, _BARE):
            text = pattern.sub(lambda match: _web(match, locale), text)
        text = _LINE_NUMBER.sub(lambda match: _line(match, locale), text)
        if "/" in text:
            text = _RELATIVE.sub(lambda match: _spoken_path(match[0], locale), text)
        text = _FILE.sub(lambda match: _spoken(match[0], locale), text)
        text = _CODE_NAME.sub(
            lambda match: match[0].replace(".", f" {_SIGNS['.'][locale.is_hindi]} "), text
        )
    elif "://" in text:
        text = _URL.sub(lambda match: _web(match, locale), text)
    if "localhost:" in text:
        text = _LOCAL.sub(lambda match: _local(match, locale), text)
    text = programs.written_out(text, locale, meant=in_program)
    text = _HANDLE.sub(lambda match: f"{_AT[locale.is_hindi]} {_name(match, locale)}", text)
    return _TAG.sub(lambda match: f"{_HASHTAG[locale.is_hindi]} {_name(match, locale)}", text)


def _mail(match: re.Match[str], locale: Locale) -> str:
    host = match["host"]
    end = "." if host.endswith("-") else ""
    return f"{_spoken(match['user'], locale)} {_AT[locale.is_hindi]} {_spoken(host, locale)}{end}"


def _web(match: re.Match[str], locale: Locale) -> str:
    whole = match[0]
    end = whole[len(whole.rstrip(".!?:")) :]
    path = match["path"].rstrip("/.!?:")
    port = ""
    if match["port"] and "." not in match["host"]:
        # A public address has the usual port in all but rare cases, one's own machine seldom.
        port = f" {_SIGNS[':'][locale.is_hindi]} {numbers.port(match['port'], locale)}"
    return _spoken(match["host"], locale) + port + _path(path, locale) + end


def _local(match: re.Match[str], locale: Locale) -> str:
    path = match["path"].rstrip("/.!?:")
    end = match["path"][len(path) :].strip("/")
    colon = _SIGNS[":"][locale.is_hindi]
    return f"localhost {colon} {numbers.port(match['port'], locale)}{_path(path, locale)}{end}"


def _line(match: re.Match[str], locale: Locale) -> str:
    """A file and a line in it: ``app.py:42``."""
    colon = _SIGNS[":"][locale.is_hindi]
    return f"{match['file']} {colon} {f' {colon} '.join(match['lines'].strip(':').split(':'))}"


def _file_path(match: re.Match[str], locale: Locale) -> str:
    path = match["path"].rstrip(".")
    end = match["path"][len(path) :]
    return f"{_spoken(match['start'] or '', locale)}{_path(path, locale)}{end}".strip()


def _spoken_path(path: str, locale: Locale) -> str:
    return _path(path, locale).strip().partition(" ")[2]


def _path(path: str, locale: Locale) -> str:
    words: list[str] = []
    for segment in path.split("/"):
        if segment:
            readable = re.sub(r"[-_]+", " ", segment)
            words.append(f" {_SIGNS['/'][locale.is_hindi]} {_spoken(readable, locale)}")
    return "".join(words)


def _name(match: re.Match[str], locale: Locale) -> str:
    return _spoken(_HUMP.sub(" ", match["name"]).replace("_", " "), locale)


def _spoken(address: str, locale: Locale) -> str:
    return " ".join(word for piece in _PIECE.findall(address) if (word := _piece(piece, locale)))


def _piece(piece: str, locale: Locale) -> str:
    if piece.isdecimal():
        if len(piece) > 4 or piece[0] == "0":
            return numbers.digits(piece, locale)
        return numbers.cardinal(int(piece), locale)
    if piece in _SIGNS:
        return _SIGNS[piece][locale.is_hindi]
    if piece.lower() in _SPELLED:
        return " ".join(piece.upper())
    return _NAMES.get(piece, piece if piece.isalpha() else "")

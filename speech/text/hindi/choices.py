"""Words with two meanings that the word before or after them decides, as a table.

A word is given as it reads, in Devanagari or in Latin letters. The first case that fits decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A word ``step`` words away, and what the ambiguous word then means; None is English."""

    step: int
    beside: re.Pattern[str]
    word: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    cases: tuple[Case, ...]
    otherwise: str | None


def _before(words: str, word: str | None) -> Case:
    return Case(-1, re.compile(words), word)


def _after(words: str, word: str | None) -> Case:
    return Case(1, re.compile(words), word)


def _choice(otherwise: str | None, *cases: Case) -> Choice:
    return Choice(cases, otherwise)


_HELPER = (
    r"(?:दि[यए].*|दी|दीजि.*|दे.*|दो|दूँ.*|ले.*|लो|लूँ.*|लि[यए].*|ली|लीजि.*|रह[ाेी].*|कर.*|के|ग[यएई].*|जा.*|चुक.*|सक.*|पा[एऊत].*|"
    r"उठ.*|ही)"
)
"""A verb that follows the stem of another one: दो, रहा, कर, गया."""
_BEING = r"(?:है|हैं|था|थी|थे|हो|नहीं)"
_ONE_TIME = r"(?:एक|दो|तीन|चार|इस|उस|हर|कई|बहुत|पहली|दूसरी|अगली|पिछली|आख़िरी|आखिरी|कितनी|बार|एकाध|सौ|इतनी|last|next|first|second)"
_POSSESSOR = r"(?:मेर[ाीे]|तेर[ाीे]|उसक[ाीे]|उनक[ाीे]|आपक[ाीे]|तुम्हार[ाीे]|इसक[ाीे]|अपन[ाीे]|हमार[ाीे]|किसक[ाीे]|की|same|your|my)"
_COUNTED = r"(?:कुछ|सिर्फ़?|बस|कितन[ाीे]|अब|ही|भी|अभी|प्रतिशत|पैसे|टाइम|time|दिन|मिनट|घंटे|balance|बहुत|खाना|नहीं|क्या)"
_FIGURE = r"(?:एक|दो|तीन|चार|पाँच|छह|सात|आठ|नौ|दस|ग्यारह|बारह|पंद्रह|पन्द्रह|बीस|पच्चीस|तीस|चालीस|पचास|साठ|सौ|हज़ार|किलो|दर्जन)"

_PAIRS = (
    ("chhap", "छप", "छाप"),
    ("chap", "छप", "छाप"),
    ("kat", "कट", "काट"),
    ("nikal", "निकल", "निकाल"),
    ("ubal", "उबल", "उबाल"),
    ("tal", "टल", "टाल"),
    ("sudhar", "सुधर", "सुधार"),
    ("sambhal", "संभल", "संभाल"),
    ("utar", "उतर", "उतार"),
    ("uchal", "उछल", "उछाल"),
    ("bandh", "बंध", "बाँध"),
    ("khul", "खुल", "खोल"),
)
"""Stems of verbs that are typed alike: what happens by itself (कट गया) and what somebody does (काट दो)."""
_PORTION = re.compile(r"किलो|किलोग्राम|ग्राम|प्लेट|plate|कटोरी|पैकेट|packet|बार|रुपये|रुपए|चावल")

CHOICES: dict[str, Choice] = {
    "daal": _choice("दाल", Case(2, _PORTION, "दाल"), _after(_HELPER + r"|न[ाेी]|ते|ता|ती", "डाल")),
    "dal": _choice("दाल", Case(2, _PORTION, "दाल"), _after(_HELPER + r"|न[ाेी]|ते|ता|ती", "डाल")),
    "pad": _choice("पद", _after(_HELPER + r"|न[ाेी]|ते|ता|ती", "पड़")),
    "chor": _choice("चोर", _after(_HELPER, "छोड़")),
    "badal": _choice("बादल", _after(_HELPER, "बदल")),
    "mar": _choice("मार", _after(r"ग[यएई].*|जा.*|रह.*|मिट.*|ही", "मर")),
    "man": _choice(
        "मन", _before(r"super|old|best|the|gentle|iron", None), _after(r"of|utd|ki_baat", None),
        _after(r"लो|जा|जाओ|जाए|जाएगा|जाएगी|ग[यएई].*|ले|लिया|ली|लें|लीजिए", "मान"),
    ),
    "maan": _choice(
        "माँ", _after(r"लो|जा|जाओ|जाए|जाएगा|जाएगी|जाना|ग[यएई].*|ले|लिया|ली|लें|लीजिए|रह.*|नहीं|सम्मान|के|कर", "मान"),
        _before(r"बात|कहना|नहीं|मत", "मान"),
    ),
    "sukh": _choice("सुख", _after(r"ग[यएई].*|रह.*|जा.*", "सूख")),
    "sun": _choice("सुन", _after(r"screen|light|set|rise|cream|bath|glasses|tan|city", None)),
    "jam": _choice("जाम", Case(-2, re.compile(r"bread|toast|roti|रोटी|ब्रेड"), None), _before(r"bread|butter|fruit|mango|mixed|और", None), _after(r"toast|sandwich|bread|session", None)),
    "bat": _choice("बात", Case(-2, re.compile(r"india|इंडिया|toss|team|टीम|भारत"), None), _before(r"cricket|नया|new|टूटा|leather|बल्ला", None), _after(r"ball|बॉल|पैड|पद|pad|टूट.*", None)),
    "ban": _choice("बन", _after(r"हो|लग.*|किय.*|हट.*|list", None)),
    "bar": _choice("बार", _before(_ONE_TIME + "|" + _FIGURE, "बार"), _after(r"बार|में|me|पे|council|code|chart|graph|open|बंद", None)),
    "age": _choice(
        "आगे", _before(_POSSESSOR, None), _after(r"क्या|limit|group|कितनी|gap|proof|तो|है", None),
    ),
    "bad": _choice("बाद", _before(r"बहुत|too|so|very|not|feel|इतना|how|ये|यह|एक|सच", None), _after(r"mood|news|luck|idea|habit|feel|words?|boy|girl|experience|habits|quality", None)),
    "door": _choice("दूर", _before(r"main|front|back|next|car|मैं|में", None), _after(r"bell|lock|open|खोल.*|खुल.*|step|delivery|number|close|बंद", None)),
    "pet": _choice("पेट", _before(r"मेर[ाीे]_|new", None), _after(r"dog|shop|animal|friendly|store|food|care|clinic", None)),
    "lie": _choice("लिए", _after(r"मत|detector", None), _before(r"white", None)),
    "pure": _choice("पूरे", _after(r"ghee|घी|cotton|veg|gold|silk|love|white|black|देसी|milk|दूध|honey|शहद|leather|vegetarian|हिन्दी|hindi|science", None)),
    "band": _choice("बंद", _after(r"बाजा|baaja|party|member|बाजे|वाले|वाला", None)),
    "beta": _choice("बेटा", _after(r"version|test|app|tester|testing|release|build", None)),
    "tab": _choice("तब", _before(r"new|browser|open|नया|दूसरा|दूसरे|close|मेरा", None), _after(r"open|close|खोल.*|बंद", None)),
    "bus": _choice(None, _after(r"करो|कर|कीजिए|इतना|इतनी|इतने|यही|ऐसे|ऐसे ही|अब|यार|थोड़ा|थोड़ी|हो|मज़ाक", "बस")),
    "kha": _choice("खा", _after(r"हो|है|हैं|से|था|थे|थी|पे|पर|तक|मिल.*", "कहाँ")),
    "kahi": _choice("कहीं", _before(r"बात|ने|मैंने|उसने|उन्होंने|तुमने|आपने", "कही"), _after(r"थी|गई|हुई|बात", "कही")),
    "rakhi": _choice("राखी", _after(r"है|हैं|थी|थीं|हुई|गई|रह.*|जा.*", "रखी"), _before(r"ने|मैंने|उसने|कहाँ|संभाल|सँभाल|करके|बना", "रखी")),
    "bara": _choice("बड़ा", _after(r"बजे|बज|रुपये|रुपए|सौ|लोग|दिन|महीने|घंटे", "बारह")),
    "udhar": _choice("उधर", _before(r"पैसे|रुपये|पैसा|रुपए|सौ|हज़ार|का|मेरा", "उधार"), _after(r"लि.*|ली|ले.*|लूँ.*|दि.*|दे.*|दो|दूँ.*|माँग.*|मांग.*|चुका.*|लौटा.*|वापस|बाक़ी|बाकी", "उधार")),
    "samaj": _choice("समाज", _after(r"नहीं|आ|आया|आई|आए|ग[यएई].*|लो|ले|लिया|रह.*|सक.*|कर|के|जाओ|ही", "समझ"), Case(2, re.compile(r"आ|आया|आई|नहीं"), "समझ")),
    "hat": _choice(None, _after(_HELPER + r"|यार", "हट")),
    "mud": _choice(None, _after(_HELPER, "मुड़")),
    "la": _choice(None, _after(_HELPER, "ला"), _before(r"ले|चाय|पानी", "ला")),
    "phase": _choice(None, _after(r"हुए|हैं|थे|है|रह.*", "फँसे")),
    "banana": _choice("बनाना", _before(_FIGURE, None), _after(r"shake|split|bread|chips|milkshake|pancake|cake|और|ले|लाना|खा.*", None)),
    "mango": _choice(None, _before(r"मत|पैसे|रुपये|माफ़ी|माफी|मुझसे|हमसे|मदद", "माँगो"), _after(r"मत", "माँगो")),
    "aata": _choice("आता", _before(r"किलो|किग्रा|किलोग्राम|गेहूँ|गेहूं|थोड़ा|multigrain|पैकेट|packet|का|दाल|चावल", "आटा"), _after(r"गू[ँं][थधद].*|goondh.*|gundh.*|पिसवा.*|गेहूँ|और|ले|लाना|चक्की|चावल|दाल|ख़त्म|खत्म|नमक", "आटा")),
    "nai": _choice("नहीं", _before(r"|एक|मेरी|तेरी|उसकी|अपनी|कोई|ये|यह|बिल्कुल|हमारी|की|का|को|ने", "नई"), _after(r"गाड़ी|car|bike|movie|film|job|वाली|नौकरी|कार|किताब|दुकान|dress|shirt|series|company", "नई")),
    "bacha": _choice("बच्चा", _before(_COUNTED + "|" + _FIGURE, "बचा"), _after(r"लो|ले|लिया|दिया|सक.*|हुआ|नहीं|के|कर|रह.*", "बचा")),
    "bachi": _choice("बच्ची", _before(_COUNTED + "|" + _FIGURE + r"|battery|चाय|जगह|seat|सीट|रोटी", "बची"), _after(r"हुई|नहीं|रह.*", "बची")),
    "bache": _choice("बच्चे", _before(_COUNTED + r"|रुपये|रुपए|बाक़ी|बाकी", "बचे"), _after(r"हुए|रह.*|नहीं", "बचे")),
    "kam": _choice("कम", _before(r"एक|मेर[ाे]|तेर[ाे]|कोई|का|अपना|अपने|सारा|सारे|ये|यह|यही|वही|ज़रूरी|जरूरी|घर|office|किस|बहुत_|personal|important", "काम")),
    "to": _choice("तो", _before(r"want|need|how|back|up|due|next|close|welcome|going|have|happy|nice|ready|able|used|reply|listen", None), _after(r"be|go|get|see|me|you|my|the|meet", None)),
    "do": _choice("दो", _before(r"to|i|we|you|they|must|can|will", None), _after(r"not|you|we|i|it|the|let|your|they", None)),
    "us": _choice("उस", _before(r"call|let|with|tell|join|contact|about|like|follow|for|give", None)),
    "in": _choice("इन", _before(r"check|log|sign|plug|made|all|built|stay|work|interested|believe|इस", None), _after(r"case|fact|general|total|short|advance|my|a|the|time|office|place|progress|stock|front", None)),
    "is": _choice("इस", _before(r"this|that|it|he|she|what|who|where|how|here|there|which|life|love", None), _after(r"this|that|it|the|not|my|your|a|on|in|so|very|best|always|ok|fine", None)),
    "saath": _choice("साथ", _before(r"सौ|एक सौ|हज़ार", "साठ"), _after(r"रुपये|रुपए|हज़ार|साल|रुपया|किलो|लाख|मिनट", "साठ")),
    "sath": _choice("साथ", _before(r"सौ|हज़ार", "साठ"), _after(r"रुपये|रुपए|हज़ार|साल|किलो|लाख", "साठ")),
    "k": _choice(None, _after(r"बाद|लिए|पास|साथ|सामने|पहले|बारे|बिना|ऊपर|नीचे|अंदर|घर|बाहर|पीछे|आगे|बीच|लोग|बच्चे|पापा|मम्मी|दिन|हिसाब|यहाँ", "के"), _before(r"कहा|बोला|बताया|लगता|पता|है|सोचा|बोलो|कहो", "कि")),
    "mana": _choice("माना", _after(r"कर|किया|करो|करना|करता|करती|करते|है|था|मत|करे|करें|करेगा|कीजिए", "मना")),
    "hal": _choice("हाल", _after(r"हो|कर|करो|करना|किया|निकल.*|निकाल.*|चल.*|ढूँढ.*|नहीं|मिल.*", "हल"), _before(r"का|सवाल|समस्या|problem|कोई", "हल")),
    "wah": _choice("वह", _before(r"|अरे|वाह|क्या", "वाह")),
    "yr": _choice(None, _before(r"[\u0900-\u097f]{2,}", "यार")),
    "hum": _choice("हम", _after(r"a|the|it|along|this|that|sound|of|my", None)),
    "b": _choice(None, _before(r"मैं|तुम|आप|हम|वो|वह|ये|यह|कुछ|कोई|अब|अभी|तू|फिर|एक|किसी|कभी|तो|जो|जब|उसको|मुझे|तुझे|घर|बहुत", "भी")),
    **{
        typed: _choice(alone, _after(r"दो|दे.*|दि[यए].*|दी|दूँ.*|दीजि.*|लो|लि[यए].*|ली|लूँ.*|ले.*|लीजि.*|रख.*|डाल.*", done))
        for typed, alone, done in _PAIRS
    },
}  # fmt: skip
"""The rule of each such word."""

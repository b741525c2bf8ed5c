"""Sentences that a recogniser tells apart."""

from __future__ import annotations

SENTENCES = [
    *("the weather will be fine tomorrow", "please open the window in the kitchen"),
    *("my brother lives in a small town", "we are going to the market today"),
    *("the meeting starts at three in the afternoon", "she bought a new car last week"),
    *("can you tell me the way to the station", "the children are playing in the garden"),
    *("i would like a cup of coffee", "the doctor said that he is doing well"),
    *("they found the letter under the table", "the last train leaves before midnight"),
]


REFERENCE = (
    "The quick brown fox jumps over the lazy dog near the river bank. "
    "I would like a cup of tea, please. How are you feeling today, my friend? Open the window."
)


OTHER_WORDS = (
    "Every good day begins with coffee and the news. Where did the children go after school? "
    "We sold nine boats last summer."
)

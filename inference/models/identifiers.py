"""The syntax of the catalog's identifiers and currencies, for forms and database constraints."""

from __future__ import annotations

# Each segment begins with a letter or digit: no "//", no "..", which clients would rewrite.
IDENTIFIER = r"\A(?=.{1,200}\Z)[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*\Z"
IDENTIFIER_RULE = (
    "Use at most 200 letters, digits, '.', '_', ':', '-' and '/'; begin with a letter or digit, "
    "also after each '/'."
)
CURRENCY = r"\A[A-Z]{3}\Z"
CURRENCY_RULE = "Use the three capital letters of ISO 4217, such as USD."

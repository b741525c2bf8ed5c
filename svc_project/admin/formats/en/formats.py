"""Django's names for formats (``FORMAT_MODULE_PATH``); the letters are those of its ``date`` filter."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = r"H:i:s \U\T\C"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = rf"{DATE_FORMAT}, {TIME_FORMAT}"

"""The speech service of this process: its wiring from the settings, and its metrics."""

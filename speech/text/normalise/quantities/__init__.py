"""Amounts of money, measures and fractions in words."""

"""Runs, records and tables of the reproduction; works from the checkout, is not part of the wheel."""

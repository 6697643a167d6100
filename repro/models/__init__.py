"""Adapters that give every library the same shape; one a file, chosen by ``_target_`` in ``conf/model``."""

"""Reproduction harness: runs cells (data set, model, protocol, seed), makes tables from their records."""

from repro.resolvers import register_resolvers

register_resolvers()

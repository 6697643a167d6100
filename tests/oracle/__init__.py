"""The equations of GBDT-MO done slowly in NumPy float64, as a check on the C core.

Nothing here imports ``gbdtmo_core``.  Sums run over the rows of a node, one candidate at a time: no histograms, no
subtraction.
"""

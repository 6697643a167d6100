"""The equations of GBDT-MO and of Rank-SVM done slowly in NumPy float64, as a check on the C core.

Nothing here imports ``gbdtmo_core``.  GBDT-MO: sums run over the rows of a node, one candidate at a time: no
histograms, no subtraction.  Rank-SVM: every pair of labels is written out, and other solvers solve the plain problem.
"""

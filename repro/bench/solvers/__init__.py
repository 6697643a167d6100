"""Ways to train a label ranking, a file each, for the benchmark of Rank-SVM."""

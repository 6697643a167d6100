"""The report page: everything published under ``results/`` as one HTML file that needs nothing else."""

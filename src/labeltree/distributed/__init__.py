"""Training on a cluster, through Dask (extra ``dask``). Nothing imports this but the command line."""

"""One file per tool: `install`, `train`, `predict_batch`, `predict_online`. docs/benchmarks.md says how."""

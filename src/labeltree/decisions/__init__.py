"""From probabilities to answers: rules that are tuned for a measure, and decisions for many rows together."""

"""Why a model says what it says: its probabilities shared out among words, nodes and training rows, exactly."""

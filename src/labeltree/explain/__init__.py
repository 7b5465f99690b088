"""Why a model says what it says: its probabilities shared out exactly among words and nodes."""

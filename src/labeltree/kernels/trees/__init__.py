"""Building of trees."""

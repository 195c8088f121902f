"""Models that people have, from their libraries' configurations with random weights."""

"""Files, names and failures that mean harm."""

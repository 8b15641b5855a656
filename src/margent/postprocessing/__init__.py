"""Of noisy answers, free of charge: consistency, projection on the simplex, merging of rare codes."""

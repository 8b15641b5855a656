"""What is made of noisy answers free of charge: tables that agree and are at least 0, merged codes, models."""

"""Noisy answers in, records out: the free half of every method."""

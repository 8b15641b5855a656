"""Attacks on our own door: bounds, gates, planted privacy bugs, the self test."""

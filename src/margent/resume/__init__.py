"""Runs that survive an interruption: charges and committed noisy answers on disk, answered again on resuming."""

"""Drafts of a schema from what other tools, dictionaries and sheets say of a table: one file a format, no row read."""

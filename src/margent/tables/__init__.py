"""Opening, streaming and writing tables of every format; no meaning, only batches."""

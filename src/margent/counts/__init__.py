"""Exact counts by one kernel, whoever feeds it. PRIVATE: for the curator and INTERNAL comparisons only."""

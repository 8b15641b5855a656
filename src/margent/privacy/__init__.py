"""The door: curator, ledger, accounting, exact noise, and queries with proven sensitivity. PRIVATE inside."""

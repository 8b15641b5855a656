"""The output folder, whole or absent: table, measurements, charges, summary and page, by allow-list."""

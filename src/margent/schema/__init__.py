"""What is public about a table: fields, domains, bins, and the codec between cells and small numbers."""

"""Pages and charts: self-contained HTML with inline SVG, no script and no request. Opens no table."""

"""A schema in the forms that other tools and people read: one file a form."""

"""A schema edited by questions in plain words, answer by answer, each checked at once."""

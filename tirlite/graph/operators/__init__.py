"""The operators that graphs are made of: each file holds all that there is to say of one, or of one family."""

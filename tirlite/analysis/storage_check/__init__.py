"""The check of a storage rewrite, from the program alone: no code in common with finder and planners."""

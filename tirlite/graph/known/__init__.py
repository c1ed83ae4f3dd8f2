"""What was found out of networks before, kept in front of the cache of code: a later process need not do it again."""

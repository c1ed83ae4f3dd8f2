"""Makes one function of several operators: one that computes, and those behind it that go by elements."""

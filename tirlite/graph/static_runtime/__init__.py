"""The static runtime: graphs run node by node, with a planner that learns how much memory they need."""

"""The pass that simplifies integer arithmetic, conditions and loops by what is known at each point."""

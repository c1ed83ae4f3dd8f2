"""Generates code that checks itself (`debug=True`): it stops at the first fault."""

"""The kernel library, written in the DSL: one kernel a file, with its NumPy reference and its cases."""

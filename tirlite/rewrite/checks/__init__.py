"""What keeps accesses inside of their buffers and iterations apart: checks, and errors that are certain."""

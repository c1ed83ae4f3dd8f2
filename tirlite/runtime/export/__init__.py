"""Writes a compiled function to files that a program in C or another language links: object, header, CMake snippet."""

"""The command line turns arguments into text and files."""

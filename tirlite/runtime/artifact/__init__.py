"""Compiled code as plain data: what the run in this process, the disk cache and export share.

It is made of an object file once, and loads without what made it.
"""

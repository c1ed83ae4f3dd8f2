"""Packing of very many blocks: the fill, what hangs from the top, and the repair of what stands out."""

"""Search for the smallest arena: engines that place buffers one by one, and what drives them."""

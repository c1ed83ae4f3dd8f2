"""Facts about threads of a block: how their loops nest, who sees which storage, what is the same in all of them."""

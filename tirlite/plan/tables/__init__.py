"""Problems and plans as text: CSV, JSON, and the sizes and facts in them."""

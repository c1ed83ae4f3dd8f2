"""What some numbers show: a function tried at a few sizes and iterations, as where parallel loops conflict."""

"""The worlds in which agents act: the Dark Room, and Meta-World's manipulation tasks."""

"""Whether each access lies in its buffer: by proof, by what holds on entry, or by a check where it stands."""

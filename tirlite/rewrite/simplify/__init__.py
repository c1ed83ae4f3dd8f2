"""The pass that writes integer arithmetic, conditions and loops as short as what is known around them allows."""

"""Programs with explicit allocation: made from functions, their storage coalesced, run, printed and serialised."""

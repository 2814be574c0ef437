"""``relive studio``: a local page where forgetting and replay can be seen. Needs the extra ``studio``."""

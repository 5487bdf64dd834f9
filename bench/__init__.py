"""How fast is one worker, beside its peers, in the same run? `python -m bench --help`."""

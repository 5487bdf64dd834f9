"""What `make` does before there is a virtual environment: look at the machine, then build one.

Standard library only, and written so that an old Python gets as far as saying that it is too old.
"""

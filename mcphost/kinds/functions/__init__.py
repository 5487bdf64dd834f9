"""A function as a program: its arguments, its rounds and its result. Kinds build on it."""

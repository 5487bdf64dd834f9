"""Small documents of our own, each with one kind of difficulty, and the requests that they must become."""

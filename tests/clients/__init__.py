"""The matrix of clients: each version of each client against a server with the demo tools, by hand.

`python -m tests.clients` installs what `versions` names under `build/clients`, or under the folder that the
variable `CLIENTS_CACHE` names, lets each client do what `scenario` says, and writes the table into
docs/clients.md. With names it runs those clients, and only prints. With `--sign-in` the clients of
`sign_in_versions` do what `sign_ins` says, without a token.
"""

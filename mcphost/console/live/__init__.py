"""The live list of calls: sockets that receive the rows that changed, and the same by polling."""

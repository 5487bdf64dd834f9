"""The methods of the protocol, one module for each part of the specification."""

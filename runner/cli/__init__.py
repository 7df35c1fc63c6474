"""The command line: check the arguments, answer questions, and turn a composed configuration into frozen cells."""

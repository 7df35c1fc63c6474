"""Machines for the cases of differential testing."""

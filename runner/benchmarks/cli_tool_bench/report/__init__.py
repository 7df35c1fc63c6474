"""Sections of the report about generated tools."""

"""Sections of the report on generated tools."""

"""Sections of the report about repositories."""

"""Sections of the report about projects that were set up."""

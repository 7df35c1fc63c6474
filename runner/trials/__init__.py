"""One trial, from an image to a record."""

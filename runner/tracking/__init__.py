"""Projections of finished sweeps to MLflow."""

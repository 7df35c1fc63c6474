"""Projections of records for people: the trials table, the leaderboard, the progress of a sweep."""

"""ExecutionAgent: an agent that sets up any project and runs its tests (Bouzenia and Pradel, sections 2 and 3)."""

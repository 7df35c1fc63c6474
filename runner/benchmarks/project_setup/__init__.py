"""The paper ExecutionAgent: set up a project and run its tests (`dataset=execution`)."""

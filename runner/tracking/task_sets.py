"""Tasks as evaluation datasets of MLflow: one for each dataset of an experiment, with a record for each task's version.

A record stays when a sweep that had its task goes, because other runs may have it too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput
    from mlflow.tracing.client import TracingClient

    from runner.report.tracked_runs import TaskSet

SOURCE = "mlflow_evaluation_dataset"
"""MLflow's name for a source of this kind."""
_SHOWN = 12
"""Digits of a task's digest that are shown."""


class TaskSets:
    """The evaluation datasets of one experiment."""

    def __init__(self, client: TracingClient, experiment: str) -> None:
        # Of MLflow's clients, the one for datasets writes only to the store of the whole process.
        self._store, self.experiment = client.store, experiment
        self._written: dict[str, str] = {}

    def input(self, wanted: TaskSet) -> DatasetInput:
        """Return the reference to these tasks for a run, after writing those that the dataset lacks."""
        from mlflow.entities import Dataset, DatasetInput  # noqa: PLC0415 - brings mlflow

        if wanted.digest not in self._written:
            self._written[wanted.digest] = self._write(wanted)
        source = json.dumps({"dataset_id": self._written[wanted.digest]})
        return DatasetInput(Dataset(wanted.dataset, wanted.digest, SOURCE, source), [])

    def _write(self, wanted: TaskSet) -> str:
        """Return the id of the dataset with these tasks in it. Tasks are told apart by name and digest."""
        name = wanted.dataset.replace("'", "_")
        listed = self._store.search_datasets([self.experiment], filter_string=f"name = '{name}'")
        dataset = listed[0] if listed else self._store.create_dataset(name, {}, [self.experiment])
        records = [
            {
                "inputs": {"task": task["task"], "digest": task["digest"].rpartition(":")[2][:_SHOWN]},
                "tags": {key: task[key] for key in ("tier", "category", "language")},
                "source": {"source_type": "CODE", "source_data": {}},
            }
            for task in wanted.tasks
        ]
        self._store.upsert_dataset_records(dataset.dataset_id, records)
        return str(dataset.dataset_id)

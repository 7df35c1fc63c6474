"""A long text in the model's few words: the summary of Figure 3 (ExecutionAgent, sections 2.3.4 and 2.4.3)."""

from __future__ import annotations

from pydantic import AliasChoices, ConfigDict, Field

from runner.records import Record

FORMAT = """{
  "summary": "what it says, in a few sentences",
  "extracted dependencies": ["packages and programs that it needs"],
  "important commands": ["commands for building and testing, complete"],
  "important files/links/hyperlinks": ["paths and addresses worth reading"]
}"""
"""What a model is asked for."""


class Summary(Record):
    """What is worth keeping of a script, a page, or a command's output."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    summary: str
    dependencies: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("extracted dependencies", "dependencies")
    )
    commands: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("important commands", "commands")
    )
    links: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices("important files/links/hyperlinks", "links")
    )

    def __str__(self) -> str:
        listed = {
            "Dependencies": self.dependencies,
            "Commands": self.commands,
            "Files and links": self.links,
        }
        return "\n".join(
            [self.summary, *(f"{title}: {'; '.join(found)}" for title, found in listed.items() if found)]
        )

"""What test frameworks say of their tests, as numbers: pure readers of what they print and of what they write.

    programs   which programs are test programs, and which files are results
    output     what is printed for people, a run at a time
    files      what is written for machines

A run in which no test was looked at is no result: no reader ever gives zero of everything.
"""

from runner.benchmarks.project_setup.frameworks.files import read_file
from runner.benchmarks.project_setup.frameworks.output import FRAMEWORKS, read_output, read_text
from runner.benchmarks.project_setup.frameworks.programs import FILES, PROGRAMS, counted

__all__ = ["FILES", "FRAMEWORKS", "PROGRAMS", "counted", "read_file", "read_output", "read_text"]

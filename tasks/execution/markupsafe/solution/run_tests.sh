#!/bin/bash
set -e
python3 setup.py build_ext --inplace
PYTHONPATH=src python3 -m pytest

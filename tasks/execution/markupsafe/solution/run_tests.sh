#!/bin/bash
set -e
python3 setup.py build_ext --inplace
PYTHONPATH="$PWD/src:$PYTHONPATH" python3 -m pytest

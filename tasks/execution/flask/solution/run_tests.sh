#!/bin/bash
set -e
PYTHONPATH="$PWD/src:$PYTHONPATH" python3 -m pytest tests

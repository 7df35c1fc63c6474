#!/bin/bash
set -e
CI=true PYTHONPATH="$PWD/src:$PYTHONPATH" python3 -m pytest

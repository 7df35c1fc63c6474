#!/bin/bash
set -e
PYTHONPATH="$PWD:$PYTHONPATH" python3 -m pytest referencing

#!/bin/bash
set -e
python3 tests/tests.py

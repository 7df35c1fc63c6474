#!/bin/bash
set -e
cmake --build build -j 2
ctest --test-dir build

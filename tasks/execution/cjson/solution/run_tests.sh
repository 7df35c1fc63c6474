#!/bin/bash
set -e
cmake -S . -B build -DCMAKE_C_FLAGS=-O0
cmake --build build -j 2
ctest --test-dir build

#!/bin/bash
set -e
cmake -S . -B build -DCMAKE_CXX_FLAGS=-O0
cmake --build build -j 2
ctest --test-dir build

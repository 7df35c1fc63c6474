#!/bin/bash
set -e
./autogen.sh
./configure --disable-nls --disable-examples --disable-shared CFLAGS=-O0
make -j 2 check

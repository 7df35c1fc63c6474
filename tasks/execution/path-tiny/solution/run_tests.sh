#!/bin/bash
set -e
perl Makefile.PL
make
prove --blib --verbose t

#!/bin/bash
set -e
make check

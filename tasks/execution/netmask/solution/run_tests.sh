#!/bin/bash
set -e
mocha tests

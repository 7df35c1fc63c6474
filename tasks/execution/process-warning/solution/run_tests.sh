#!/bin/bash
set -e
node --test test

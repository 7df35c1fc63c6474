#!/bin/bash
set -e
tape 'test/**/*.js'

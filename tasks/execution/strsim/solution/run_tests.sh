#!/bin/bash
set -e
cargo test --offline

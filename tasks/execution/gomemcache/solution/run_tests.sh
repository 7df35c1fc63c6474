#!/bin/bash
set -e
memcached -d
until (: < /dev/tcp/127.0.0.1/11211) 2> /dev/null; do sleep 0.1; done
go test -v ./...

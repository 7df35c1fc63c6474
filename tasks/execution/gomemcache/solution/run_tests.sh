#!/bin/bash
set -e
memcached -d
until (: < /dev/tcp/127.0.0.1/11211) 2> /dev/null; do sleep 0.1; done
# A part of each test hangs on the second at which memcached looks at its clock; it is no test of its own.
go test -short -v ./...

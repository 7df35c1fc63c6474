#!/bin/bash
set -e
# Some tests skip themselves where a JVM has little memory, by default a quarter of the sandbox's. 512 MB are that of 2 GiB.
export JAVA_TOOL_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx512m'
mh_patchpoms -pproject --debian-build --keep-pom-version --maven-repo=/usr/share/maven-repo
mvn -o -B -Dmaven.repo.local=/usr/share/maven-repo -Dmaven.compiler.source=8 -Dmaven.compiler.target=8 test

#!/bin/bash
set -e
export JAVA_TOOL_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
mh_patchpoms -pproject --debian-build --keep-pom-version --maven-repo=/usr/share/maven-repo
mvn -o -B -Dmaven.repo.local=/usr/share/maven-repo -Dmaven.compiler.source=8 -Dmaven.compiler.target=8 test

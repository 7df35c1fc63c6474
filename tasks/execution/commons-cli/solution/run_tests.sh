#!/bin/bash
set -e
mh_patchpoms -pproject --debian-build --keep-pom-version --maven-repo=/usr/share/maven-repo
mvn -o -B -Dmaven.repo.local=/usr/share/maven-repo test

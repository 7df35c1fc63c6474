#!/bin/sh
# Makes the base image out of a minimal Debian, in a container that is committed afterwards.
set -eu
export DEBIAN_FRONTEND=noninteractive

# No documentation and translations, now or with what tasks install later; no service starts during a build.
cat > /etc/dpkg/dpkg.cfg.d/assay <<EOF
path-exclude /usr/share/doc/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
EOF
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

apt-get update -qq
apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@"
useradd --create-home --shell /bin/bash --uid 1000 agent

# Which packages this is made of, each with the SHA-256 of its file where the mirror still has that version. The mirror's
# lists are signed, and apt has checked that.
mkdir -p /usr/share/assay
dpkg-query -W -f '${Package}=${Version}:${Architecture}\n' | sort > /tmp/installed
apt-cache dumpavail | awk '
    $1 == "Package:" { name = $2 } $1 == "Version:" { version = $2 } $1 == "Architecture:" { machine = $2 }
    $1 == "SHA256:" { print name "=" version ":" machine, $2 }' | sort -u > /tmp/available
join -a 1 -e unknown -o 0,2.2 /tmp/installed /tmp/available > /usr/share/assay/packages
rm /tmp/installed /tmp/available

apt-get clean
rm -rf /usr/share/doc/* /usr/share/info/* /usr/share/locale/* /usr/share/man/* /var/lib/apt/lists/* \
    /var/cache/apt/*.bin /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /tmp/assay-build

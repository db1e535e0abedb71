#!/bin/sh
# Makes ./configure from a fresh checkout. Needs autoconf, automake, libtool and pkg-config.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v "$tool" >/dev/null || {
        echo "autogen.sh: $tool is missing; on Debian and Ubuntu: apt-get install autoconf automake libtool pkg-config" >&2
        exit 1
    }
done
autoreconf --install --force
echo "Now: ./configure && make && make check && make install"

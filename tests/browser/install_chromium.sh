#!/bin/sh
# Debian's Chromium, which the tests of the report's page drive: no wheel has one.
# Does nothing where there is one; needs apt-get and root (or sudo without a password) otherwise.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done

as_root=
if [ "$(id -u)" != 0 ]; then
    as_root="sudo -n"
fi
if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
    echo "no Chromium, and it cannot be installed from here: tests/browser is skipped;" \
        "install it (Debian, Ubuntu: apt install chromium) to run these tests" >&2
    exit 0
fi
echo "installing Chromium for tests/browser" >&2
export DEBIAN_FRONTEND=noninteractive
if ! { $as_root apt-get -qq update && $as_root apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null; then
    echo "Chromium could not be installed: tests/browser is skipped" >&2
fi

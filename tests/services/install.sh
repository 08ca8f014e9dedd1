#!/usr/bin/env bash
# Installs the S3 servers that the tests start: Ceph's gateway from the distribution (needs root), the others from PyPI
# into an environment of their own. Nothing is started. Safe to run again.
#
#   bash tests/services/install.sh
#
# STATESTORE_SERVERS_HOME says where that environment goes; the default is ~/.cache/statestore/servers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STATESTORE_SERVERS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/statestore/servers}

if ! { command -v radosgw && command -v ceph-mon && command -v ceph-osd; } > /dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    # No package is started: the tests start the daemons themselves, in a folder of their own.
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
      -o Dpkg::Options::=--force-unsafe-io radosgw ceph-mon ceph-osd > /dev/null
  else
    echo "skipped: radosgw, ceph-mon and ceph-osd need root and apt-get; install them by hand" >&2
  fi
fi

[ -x "$home/bin/python" ] || "${PYTHON:-python3}" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"

#!/usr/bin/env bash
# Installs the servers that the tests start: Ceph's gateway, OpenSSH's server and node from the distribution (needs
# root), with strace, by which tests count; the others from PyPI and npm into an environment of their own. Nothing is
# started. Safe to run again.
#
#   bash tests/services/install.sh
#
# STATESTORE_SERVERS_HOME says where that environment goes; the default is ~/.cache/statestore/servers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STATESTORE_SERVERS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/statestore/servers}

PATH=$PATH:/usr/sbin:/sbin
missing=()
command -v radosgw > /dev/null && command -v ceph-mon > /dev/null && command -v ceph-osd > /dev/null ||
  missing+=(radosgw ceph-mon ceph-osd)
command -v sshd > /dev/null || missing+=(openssh-server)
command -v ssh-keygen > /dev/null || missing+=(openssh-client)
command -v npm > /dev/null || missing+=(nodejs npm)
command -v strace > /dev/null || missing+=(strace)
if [ ${#missing[@]} != 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    # No package is started: the tests start the daemons themselves, in a folder of their own.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
      -o Dpkg::Options::=--force-unsafe-io "${missing[@]}" > /dev/null
  else
    echo "skipped: ${missing[*]} need root and apt-get; install them by hand" >&2
  fi
fi

[ -x "$home/bin/python" ] || "${PYTHON:-python3}" -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"

azurite=3.35.0 # later ones need a newer node than distributions have
if ! command -v npm > /dev/null; then
  echo "skipped: azurite needs node 20 and npm" >&2
elif ! grep -qs "\"version\": \"$azurite\"" "$home/npm/node_modules/azurite/package.json"; then
  npm install --prefix "$home/npm" --no-audit --no-fund --silent "azurite@$azurite"
fi

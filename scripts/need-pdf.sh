#!/usr/bin/env bash
# Makes sure that there is pdftotext, with which tests read PDF files back. As root, on Debian and its
# kin, poppler-utils is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian.sh

command -v pdftotext >/dev/null || install_packages poppler-utils || {
	echo "The tests of PDF files need pdftotext. Install it (Debian: poppler-utils), or use make test-short." >&2
	exit 1
}

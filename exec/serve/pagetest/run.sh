#!/usr/bin/env bash
# run.sh PROGRAM FOLDER: tests of the page in headless Chromium, with what they need in FOLDER, where their
# screenshots are too. Chromium is that of the system, of Debian's package, or Playwright's own.
set -euo pipefail
program=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
playwright=playwright-core@1.65.1

install() {
	local root=sudo
	[ "$(id -u)" != 0 ] || root=
	$root apt-get update -qq
	$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

command -v node >/dev/null || install nodejs npm
command -v npm >/dev/null || install npm
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$playwright" ]; then
	npm install --silent --no-save --no-package-lock --prefix "$folder" "$playwright" >/dev/null
	echo "$playwright" >"$folder/installed"
fi
find_browser() {
	command -v chromium-headless-shell || command -v chromium || command -v google-chrome || true
}
browser=$(find_browser)
if [ -z "$browser" ] && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
	install chromium-headless-shell
	browser=$(find_browser)
elif [ -z "$browser" ]; then
	"$folder/node_modules/.bin/playwright-core" install --with-deps chromium-headless-shell
fi

mkdir -p "$folder/shots"
for model in small large; do
	seed=$([ $model = small ] && echo 1 || echo 2)
	[ -e "$folder/$model/config.json" ] || "$program" model make --shape tiny --seed "$seed" "$folder/$model" >/dev/null
done
cp "$here/page.test.mjs" "$folder/" # modules are looked up from where the file is
cd "$folder"
PROGRAM=$program MODELS=$folder SHOTS=$folder/shots CHROMIUM=$browser node --test page.test.mjs

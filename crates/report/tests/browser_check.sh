#!/bin/sh
# Opens a report in headless Chromium on a wide and on a narrow screen, light and dark, and fails if the browser
# complains, if anything is fetched, if the page scrolls sideways, or if labels of a figure overlap.
#
#   browser_check.sh REPORT.html [FOLDER]    screenshots go to FOLDER, by default beside the report
#
# CHROMIUM names the browser if it is not found under one of its usual names.
set -eu

if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    echo "usage: $0 REPORT.html [FOLDER]" >&2
    exit 2
fi
report=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=${2:-$(dirname "$report")}
mkdir -p "$folder"

browser=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
if [ -z "$browser" ]; then
    echo "error: no Chromium found" >&2
    echo "hint: install it, or set CHROMIUM to its path" >&2
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM

# open SCHEME WIDTH OPTION… ADDRESS, the scheme 0 for dark and 1 for light, as Blink numbers them
open_page() {
    scheme=$1 width=$2
    shift 2
    rm -rf "$scratch/profile"
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
        --user-data-dir="$scratch/profile" --enable-logging=stderr \
        --blink-settings=preferredColorScheme="$scheme" --window-size="$width,2400" "$@" 2>"$scratch/talk"
}

# The page forbids scripts, so the probe runs in a copy without that rule; a window cannot be as narrow as a phone, so
# the copy stands in a frame that can.
cat >"$scratch/probe.html" <<'PROBE'
<script>
addEventListener("load", () => {
  const faults = [];
  const root = document.documentElement;
  for (const details of document.querySelectorAll("details")) details.open = true;
  if (root.scrollWidth > root.clientWidth) {
    faults.push("the page is " + root.scrollWidth + " wide on a screen of " + root.clientWidth);
  }
  for (const entry of performance.getEntriesByType("resource")) {
    if (!entry.name.startsWith("data:")) faults.push("fetched " + entry.name);
  }
  for (const drawing of document.querySelectorAll("svg")) {
    const texts = [...drawing.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    const shown = texts.filter(([, box]) => box.width > 0);
    shown.forEach(([name, box], place) => {
      if (box.left < -1 || box.right > root.clientWidth + 1) faults.push("label " + name + " leaves the screen");
      for (const [other, next] of shown.slice(place + 1)) {
        const across = Math.min(box.right, next.right) - Math.max(box.left, next.left);
        const down = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
        // Boxes of text reach above and below its letters, so a little overlap is none to the eye.
        if (across > 1 && down > 4) faults.push("labels " + name + " and " + other + " overlap");
      }
    });
  }
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const found = scheme + " " + innerWidth + " faults " + faults.length + ": " + faults.slice(0, 5).join("; ");
  parent.postMessage(found, "*");
});
</script>
PROBE
sed -e '/Content-Security-Policy/d' -e "/<\/head>/r $scratch/probe.html" "$report" >"$scratch/report.html"

failed=0
for width in 1280 390; do
    cat >"$scratch/frame.html" <<FRAME
<!DOCTYPE html>
<html style="color-scheme: light dark">
<script>addEventListener("message", event => document.documentElement.setAttribute("data-probe", event.data));</script>
<iframe src="report.html" style="border: 0; width: ${width}px; height: 2400px"></iframe>
</html>
FRAME
    for look in light dark; do
        scheme=1
        [ "$look" = dark ] && scheme=0
        shot="$folder/report-$look-$width.png"
        open_page "$scheme" "$width" --screenshot="$shot" "file://$report" >/dev/null
        if grep CONSOLE "$scratch/talk" >"$scratch/console"; then
            echo "error: $look, $width pixels: the browser complains: $(head -n 3 "$scratch/console")" >&2
            failed=1
        fi
        [ -s "$shot" ] || { echo "error: $look, $width pixels: no screenshot" >&2; failed=1; }
        found=$(open_page "$scheme" "$width" --virtual-time-budget=5000 --dump-dom "file://$scratch/frame.html" |
            sed -n 's/.*data-probe="\([^"]*\)".*/\1/p')
        case $found in
        "$look $width faults 0: ") echo "$look, $width pixels: good" ;;
        *) echo "error: $look, $width pixels: ${found:-the probe did not run}" >&2; failed=1 ;;
        esac
    done
done
exit $failed

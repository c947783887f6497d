import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const places = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/**
 * Starts the Chromium of this machine.
 *
 * @throws Error without one, because a suite that is skipped would pass without a check.
 */
export function startChromium(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] || places.find((place) => existsSync(place));
  if (executablePath === undefined) {
    throw new Error(
      "there is no Chromium: install it (on Debian: apt-get install chromium), or name one with CHROMIUM=<path>",
    );
  }
  // Without a sandbox, since containers and root have none; it only opens this suite's own pages.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

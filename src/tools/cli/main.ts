#!/usr/bin/env node
/* v8 ignore file -- process entry: the sessions of the documentation and npm start run it in a child process */
import { nodeTooOld } from "./node-version.ts";

const complaint = nodeTooOld(process.versions.node);
// Loaded lazily: an older Node may fail to parse it.
if (complaint === undefined) await import("./command-process.ts");
else {
  process.stderr.write(`keelson: ${complaint}\n`);
  process.exitCode = 2;
}

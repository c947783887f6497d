#!/usr/bin/env node
/* v8 ignore file -- the entry of a process: the documents' sessions and npm start run it as one of their own */
import { nodeTooOld } from "./node-version.ts";

const complaint = nodeTooOld(process.versions.node);
// Loaded here: an older Node may not even read it.
if (complaint === undefined) await import("./command-process.ts");
else {
  process.stderr.write(`keelson: ${complaint}\n`);
  process.exitCode = 2;
}

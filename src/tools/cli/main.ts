#!/usr/bin/env node
import { nodeTooOld } from "./node-version.ts";

const complaint = nodeTooOld(process.versions.node);
// Loaded lazily, because an older Node may fail to parse the module.
if (complaint === undefined) await import("./command-process.ts");
else {
  process.stderr.write(`keelson: ${complaint}\n`);
  process.exitCode = 2;
}

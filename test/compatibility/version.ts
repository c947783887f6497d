// The versions that meet on one stack: the sources, and the kept bundles of earlier versions.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type * as Keelson from "keelson";
import type * as ClaimLayer from "keelson/claim-layer";
import type * as Lambda from "keelson/lambda";
import type * as Middy from "keelson/middy";
import type * as Operators from "keelson/operators";

/** The public entry points of a version, in so far as versions meet by them. */
export interface Version {
  readonly name: string;
  readonly keelson: typeof Keelson;
  readonly lambda: typeof Lambda;
  readonly middy: typeof Middy;
  readonly claimLayer: typeof ClaimLayer;
  readonly operators: typeof Operators;
}

/** The earlier versions that are kept, by the names of their folders. */
export function keptVersions(): readonly string[] {
  return readdirSync(join(import.meta.dirname, "kept")).sort();
}

/** Folder of a kept version. */
export function keptFile(version: string, file: string): string {
  return join(import.meta.dirname, "kept", version, file);
}

/** The version of the sources. */
export async function currentVersion(): Promise<Version> {
  const [keelson, lambda, middy, claimLayer, operators] = await Promise.all([
    import("keelson"),
    import("keelson/lambda"),
    import("keelson/middy"),
    import("keelson/claim-layer"),
    import("keelson/operators"),
  ]);
  return { name: "current", keelson, lambda, middy, claimLayer, operators };
}

/** A kept version, in its published form. */
export async function keptVersion(name: string): Promise<Version> {
  const url = pathToFileURL(keptFile(name, "keelson.js")).href;
  // Safe for the calls of the tests: the first kept version had them, and public API remains.
  const bundle = (await import(/* @vite-ignore */ url)) as Omit<
    Version,
    "operators" | "claimLayer"
  > &
    Partial<Version>;
  const { keelson, lambda, middy } = bundle;
  // Safe: what `keelson/operators` has, `keelson` had before there was such an entry point, and `keelson/middy` the layer.
  const operators = bundle.operators ?? (keelson as unknown as typeof Operators);
  return {
    name,
    keelson,
    lambda,
    middy,
    claimLayer: bundle.claimLayer ?? (middy as unknown as typeof ClaimLayer),
    operators,
  };
}

/** Each kept version with the current one, in both orders, and how that is called. */
export async function versionPairs(
  current: Version,
): Promise<readonly (readonly [string, Version, Version])[]> {
  const kept = await Promise.all(keptVersions().map(keptVersion));
  return kept.flatMap((version) => [
    [`${version.name}, then this one`, version, current] as const,
    [`this one, then ${version.name}`, current, version] as const,
  ]);
}

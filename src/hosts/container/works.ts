import { metricsPage } from "../../app/metrics/metrics-page.ts";
import { routed } from "../../app/registry/registry.ts";
import { healthHandlers } from "../../app/routes/health.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Variables } from "../../base/process/environment.ts";
import { webFunctionEndpoint } from "../../base/process/platform.ts";
import { createRouteTable } from "../../parts/http/route-table.ts";
import { type ContainerWork, isWork, works } from "../container-http/http-options.ts";

/**
 * Returns the work of a process: the given work, otherwise `KEELSON_RUN`, otherwise all. On a Web Function
 * only `http`, because Lambda routes no requests to a process that stops, and runs many.
 *
 * @throws Error for an unknown or no work, or for more than a Web Function does.
 */
export function worksOf(
  given: readonly ContainerWork[] | undefined,
  variables: Variables,
): ReadonlySet<ContainerWork> {
  const isWebFunction = webFunctionEndpoint(variables) !== undefined;
  const found = new Set(given ?? namedWorks(variables) ?? (isWebFunction ? ["http"] : works));
  if (isWebFunction && !(found.size === 1 && found.has("http")))
    throw new Error(
      `run: a Web Function only serves requests, and ${[...found].join(", ")} is asked for; leave it out there, and run the rest in event functions or a container`,
    );
  return found as ReadonlySet<ContainerWork>; // safe: `runContainer` has checked the given works
}

function namedWorks({ KEELSON_RUN: text }: Variables): ContainerWork[] | undefined {
  if (text === undefined) return undefined;
  const names = text.split(",").map((name) => name.trim());
  if (names.every(isWork)) return names;
  throw new Error(
    `KEELSON_RUN: ${JSON.stringify(text.slice(0, 200))} is not a list of some of ${works.join(", ")}`,
  );
}

/** Returns the routes of a process: all, or without `http` only health and metrics. */
export function routesOf(runtime: Runtime, found: ReadonlySet<ContainerWork>): Runtime["routes"] {
  if (found.has("http")) return runtime.routes;
  return createRouteTable(routed([...healthHandlers(runtime), ...metricsPage(runtime)]));
}

import type { DeclaredLabels } from "../../base/metrics/bounded-metrics.ts";
import { deliveryJob } from "../../parts/messages/delivery.ts";
import { builtInChannels } from "../features/declare-messages.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { routeLabel } from "./run-metrics.ts";

/** The routes of keelson's own that every server has beside those of its configuration. */
const ownRoutes = ["POST /log", "GET /health/ready", "GET /health/live", "GET /metrics"] as const;

/** What labels of a server's metrics may be. */
export function declaredLabels({ registry, options }: DeclaredServer): DeclaredLabels {
  const { handlers, consumers, jobs, schedules, channels } = registry;
  const routes = [...handlers.values(), ...configHandlers(registry)].flatMap(
    ({ route }) => route ?? [],
  );
  return {
    routes: [...routes, ...ownRoutes].map((route) => routeLabel(route, options.basePath)),
    handlers: [
      deliveryJob,
      ...[handlers, consumers, jobs, schedules].flatMap((declared) => [...declared.keys()]),
    ],
    channels: [...builtInChannels, ...channels.keys()],
  };
}

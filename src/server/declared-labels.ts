import { builtInChannels } from "../declare/declare-messages.ts";
import type { DeclaredServer } from "../declare/declared-server.ts";
import { deliveryJob } from "../events/delivery.ts";
import type { DeclaredLabels } from "../metrics/bounded-metrics.ts";
import { routeLabel } from "../observe/run-metrics.ts";
import { configHandlers } from "../operators/config-handlers.ts";

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

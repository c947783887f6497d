export type { HttpServerOptions } from "./http-server.ts";
export { type Container, type ContainerOptions, runContainer } from "./run-container.ts";

export type { HttpServerOptions, TlsOptions, UpgradeHandler } from "./http-options.ts";
export { type Container, type ContainerOptions, runContainer } from "./run-container.ts";

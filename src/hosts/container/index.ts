export type {
  ContainerWork,
  HttpServerOptions,
  TlsOptions,
  UpgradeHandler,
} from "../container-http/http-options.ts";
export { type Container, type ContainerOptions, runContainer } from "./run-container.ts";

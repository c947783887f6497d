import { systemCode } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Variables } from "../../base/process/environment.ts";
import { webFunctionEndpoint } from "../../base/process/platform.ts";
import type { TlsOptions } from "../container-http/http-options.ts";

export interface Address {
  readonly port: number;
  /** `undefined` listens on every address. */
  readonly host: string | undefined;
}

export interface AddressOptions extends Partial<Address> {
  readonly tls?: TlsOptions;
}

/** Returns the address to listen on. @throws Error if it is not an address. */
export function addressOf(options: AddressOptions, variables: Variables): Address {
  const endpoint = webFunctionEndpoint(variables);
  if (endpoint === undefined) return { port: portOf(options.port, variables), host: options.host };
  if (options.tls !== undefined)
    throw new Error("tls: Lambda sends a Web Function plain HTTP; leave the option out there");
  const [, bracketed, host = bracketed, port] = hostAndPort.exec(endpoint) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new Error(
      `AWS_LAMBDA_HTTP_ENDPOINT: ${JSON.stringify(endpoint.slice(0, 300))} is not a host and a port, such as 0.0.0.0:8080`,
    );
  return { port: Number(port), host };
}

const hostAndPort = /^(?:\[([\da-f:.]{2,45})\]|([\w.-]{1,253})):([1-9]\d{0,4})$/i;

export function portOf(port: number | undefined, variables: Variables): number {
  const given = port ?? (variables["PORT"] || 3000);
  const number = Number(given);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new Error(`PORT: ${JSON.stringify(given)} is not a port; set a number from 0 to 65535`);
  return number;
}

/** Warns of an address that the code or the environment gives and a Web Function ignores. */
export function warnOfIgnoredAddress(
  log: Logger,
  options: AddressOptions,
  variables: Variables,
  { port, host }: Address,
): void {
  const given = options.port ?? (variables["PORT"] || undefined);
  const ignored = {
    ...(given === undefined || Number(given) === port ? {} : { port: given }),
    ...(options.host === undefined || options.host === host ? {} : { host: options.host }),
  };
  if (Object.keys(ignored).length > 0)
    log.warn("server.address_ignored", { ignored, address: webFunctionEndpoint(variables) });
}

/** Error whose message is complete, so that its stack is not logged. */
export class ListenError extends Error {}

export function listenError(error: unknown, port: number): unknown {
  const reason = reasons.get(systemCode(error));
  return reason === undefined ? error : new ListenError(`Port ${port} ${reason}`);
}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "is in use: stop the process that listens on it, or set PORT to another one"],
  ["EACCES", "may not be used by this user: set PORT to one above 1023"],
]);

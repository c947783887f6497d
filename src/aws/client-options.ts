/** Where a service of AWS is, where that is not AWS's own endpoint of the environment's region and account. */
export interface ClientOptions {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
}

/** The options that are there, as clients of the SDK take them: for what is absent the SDK looks itself. */
export function clientOptions({ endpoint, region, credentials }: ClientOptions) {
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(credentials === undefined ? {} : { credentials }),
  };
}

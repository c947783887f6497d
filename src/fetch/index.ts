export { FetchFailedError } from "./fetch-failed-error.ts";
export type { Retry, RetryingFetchOptions } from "./options.ts";
export { retryingFetch } from "./retrying-fetch.ts";

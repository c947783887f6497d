export { FetchFailedError } from "./fetch-failed-error.ts";
export { type Retry, type RetryingFetchOptions, retryingFetch } from "./retrying-fetch.ts";

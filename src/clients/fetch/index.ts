export {
  FetchFailedError,
  type Retry,
  type RetryingFetchOptions,
  retryingFetch,
} from "./retrying-fetch.ts";

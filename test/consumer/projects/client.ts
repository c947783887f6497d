import { FetchFailedError, type Retry, retryingFetch } from "keelson/fetch";
import createClient from "openapi-fetch";
import type { paths } from "../../fixtures/files-api.d.ts";

declare const process: { readonly env: Readonly<Record<string, string | undefined>> };
const { API: baseUrl = "", TOKEN: token = "" } = process.env;

let attempts = 0;
/** Loses the first answer, after the server has handled the request. */
const unreliable: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (++attempts > 1) return response;
  await response.body?.cancel();
  throw new TypeError("the answer was lost");
};

const retries: Retry[] = [];
const fetching = retryingFetch({
  fetch: unreliable,
  attempts: 3,
  onRetry: (retry) => retries.push(retry),
});
const client = createClient<paths>({ baseUrl, fetch: fetching });
client.use({
  onRequest: ({ request }) => {
    request.headers.set("authorization", `Bearer ${token}`);
  },
});

export const isOffline = (error: unknown): boolean =>
  error instanceof FetchFailedError && error.attempts > 0;

const made = await client.POST("/files", { body: { name: "a.txt", sizeMb: 1 } });
if (made.error) throw new Error(made.error.message);
const attemptsOfWrite = attempts;

const list = await client.GET("/files", { params: { query: { limit: 10 } } });
if (list.error) throw new Error(list.error.message);
const names: string[] = list.data.items.map(({ name }) => name);

const params = { path: { id: "nothing" }, header: { "X-Request-ID": "r-7" } };
const lost = await client.GET("/files/{id}", { params });
const requestId = lost.error?.error === "not_found" ? lost.error.requestId : undefined;

const wrong = await client.POST("/files", { body: { name: "film.mp4", sizeMb: 11 } });
const fields =
  wrong.error?.error === "validation_error" ? wrong.error.fields?.map(({ field }) => field) : [];
// @ts-expect-error it is a number
void (() => client.POST("/files", { body: { name: "a", sizeMb: "1" } }));

console.log(
  JSON.stringify({
    made: made.data,
    attempts: attemptsOfWrite,
    files: names,
    lost: lost.error?.error,
    requestId,
    wrong: fields,
  }),
);

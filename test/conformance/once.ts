import { expect } from "vitest";
import type { Row } from "./row.ts";

/** Section 6.6: a write that is sent again. */
export const onceRows: readonly Row[] = [
  {
    section: "6.6",
    sentence:
      "Write deduplication: same pattern with key `dedup:<requestId>`, 300 s expiry; on a repeat the cached result is returned.",
    prove: async ({ app, newCaller, fetch, route }) => {
      let runs = 0;
      const path = route(() => ({ run: ++runs }));
      const as = newCaller();
      const headers = { "x-request-id": `once-${as.id}` };
      const write = () => fetch(path, { method: "POST", body: {}, as, headers });
      expect((await write()).body).toEqual({ run: 1 });
      expect((await write()).body).toEqual({ run: 1 });
      app.clock.advance(301_000);
      expect((await write()).body).toEqual({ run: 2 });
    },
  },
];

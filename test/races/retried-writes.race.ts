import { expect } from "vitest";
import { create, filesOf, type Race, race } from "./race.ts";

const retried = async (send: () => Promise<Response>): Promise<Response> => {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const response = await send();
    if (response.status < 500 && response.status !== 409) return response;
    await new Promise((resolve) => setTimeout(resolve, 40_000)); // of the race's clock
  }
  throw new Error("five attempts failed");
};

const once: Race = {
  requests: [create("k"), create("k")],
  check: async (app) => {
    expect((await retried(() => create("k")(app))).status).toBe(201);
    expect(await filesOf(app)).toHaveLength(1);
  },
};
race("one write, sent twice,", once);
race("one write, sent twice, with a crash,", { ...once, crashes: 1 });
race("one write, sent twice, with a lost answer,", { ...once, lostAnswers: 1 });
race("one write, sent twice, throttled,", { ...once, throttles: 1 });
race("one write, sent twice, past its lease,", { ...once, expiries: 1 });

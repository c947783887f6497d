import { defineFeature } from "keelson";
import { z } from "zod";
import { notes } from "./notes.ts";

const day = 86_400;

/** Reminds the authors of notes. */
export const reminders = defineFeature("reminders", (r) => {
  const remind = r.job("note.remind", {
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      // The channel `log` writes to the log. To send mail, declare your own with `r.channel`.
      await ctx.delivery.send("log", { text: `note ${id} is a day old` });
    },
  });

  r.on(notes.created, {
    name: "plan-reminder",
    handler: async (ctx, { payload: { id } }) => {
      await ctx.enqueue(remind, { id }, { delaySeconds: day });
    },
  });
});

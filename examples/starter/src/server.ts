import { buildServer } from "keelson";
import { docs } from "./docs.ts";
import { notes } from "./notes.ts";
import { reminders } from "./reminders.ts";

/** The server that both hosts run. Building it does not start it. */
export const server = buildServer({ features: [notes, reminders, ...docs] });

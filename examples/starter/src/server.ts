import { buildServer } from "keelson";
import { notes } from "./notes.ts";

/** The server that both hosts run. Building it does not start it. */
export const server = buildServer({ features: [notes] });

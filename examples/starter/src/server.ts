import { buildServer } from "keelson";
import { notes } from "./notes.ts";

/** What both hosts run. Building it starts nothing. */
export const server = buildServer({ features: [notes] });

import { asyncApiDocument } from "../../../app/openapi/asyncapi.ts";
import { documentCommand, documentUsage } from "./document-command.ts";

const command = {
  name: "asyncapi",
  purpose: `Writes the AsyncAPI 3 document of a server: its events, jobs and deliveries, as they are on the wire. The same
declarations give the same document, whatever the environment.`,
};
export const asyncApiUsage = documentUsage(command);
export const run = documentCommand({ ...command, make: asyncApiDocument });

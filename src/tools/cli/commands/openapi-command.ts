import { serverDocument } from "../../../app/routes/openapi-document.ts";
import { documentCommand, documentUsage } from "./document-command.ts";

const command = {
  name: "openapi",
  purpose:
    "Writes the OpenAPI 3.1 document of a server. The same declarations give the same document, whatever the environment.",
};
export const openApiUsage = documentUsage(command);
export const run = documentCommand({ ...command, make: serverDocument });

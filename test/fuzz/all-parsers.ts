import type { Parser } from "./parser.ts";
import { bodyParsers } from "./parsers/bodies.ts";
import { callerParsers } from "./parsers/callers.ts";
import { claimRowParsers } from "./parsers/claim-rows.ts";
import { cursorParsers } from "./parsers/cursors.ts";
import { logParsers } from "./parsers/logs.ts";
import { messageParsers } from "./parsers/messages.ts";
import { requestParsers } from "./parsers/requests.ts";
import { rowParsers } from "./parsers/rows.ts";
import { secretParsers } from "./parsers/secrets.ts";
import { socketParsers } from "./parsers/socket.ts";
import { webhookParsers } from "./parsers/webhooks.ts";

/** Every parser of bytes that others choose, except those with a property next to their source. */
export const allParsers: readonly Parser[] = [
  ...socketParsers,
  ...requestParsers,
  ...bodyParsers,
  ...callerParsers,
  ...webhookParsers,
  ...messageParsers,
  ...cursorParsers,
  ...secretParsers,
  ...rowParsers,
  ...claimRowParsers,
  ...logParsers,
];

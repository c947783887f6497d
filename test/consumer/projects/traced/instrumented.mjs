// The same with instrumentations, which see the modules that are imported.
import { register } from "node:module";
import { createAddHookMessageChannel } from "import-in-the-middle";

const { registerOptions, waitForAllMessagesAcknowledged } = createAddHookMessageChannel();
register("import-in-the-middle/hook.mjs", import.meta.url, registerOptions);
await import("./instrumented.cjs");
await waitForAllMessagesAcknowledged();

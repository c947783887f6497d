import { configureGlobal, readConfigureGlobal } from "fast-check";

// Properties of one state of the sources try the same values each time they run; see vitest.config.ts.
configureGlobal({ ...readConfigureGlobal(), seed: Number(process.env["KEELSON_TEST_SEED"]) });

import { answerLines } from "./answer-lines.ts";
import { claimLayerLines } from "./claim-layer-lines.ts";
import { configLines } from "./config-lines.ts";
import type { Line } from "./line.ts";
import { messageLines } from "./message-lines.ts";

/** All that versions leave to each other. Add lines; one that is there says what an older version was promised. */
export const lines: readonly Line[] = [
  ...answerLines,
  ...messageLines,
  ...configLines,
  ...claimLayerLines,
];

import { answerLines } from "./answer-lines.ts";
import { claimLayerLines } from "./claim-layer-lines.ts";
import { configLines } from "./config-lines.ts";
import type { Line } from "./line.ts";
import { messageLines } from "./message-lines.ts";

/** All data that versions leave to each other. Add lines, but keep existing ones, which are promises to older versions. */
export const lines: readonly Line[] = [
  ...answerLines,
  ...messageLines,
  ...configLines,
  ...claimLayerLines,
];

import { eventFunction, type FunctionKind } from "./function-part.ts";
import { given } from "./parameters.ts";
import { ref, type TemplatePart } from "./template.ts";

/** A stream may last as long as a function runs: 15 minutes. */
const longestSeconds = 900;
export const longestStreamMs = longestSeconds * 1_000;

/** The functions and parameters of a front that passes requests on to event functions. */
export function requestFunctions(isStreaming: boolean): {
  readonly kind: FunctionKind;
  readonly parameters: readonly TemplatePart[];
} {
  if (!isStreaming) return { kind: eventFunction(), parameters: [] };
  return { kind: eventFunction({ Timeout: ref("StreamTimeout") }), parameters: [streamParameters] };
}

const streamParameters: TemplatePart = {
  Parameters: {
    StreamTimeout: given(60, "Timeout of a streamed response, in seconds", {
      MinValue: 1,
      MaxValue: longestSeconds,
    }),
  },
};

import type { Front } from "./front.ts";
import { httpFront } from "./http-front.ts";
import { restFront } from "./rest-front.ts";
import { urlFront } from "./url-front.ts";
import { webFront } from "./web-front.ts";

export const frontNames = ["http", "web", "rest", "url"] as const;
export type FrontName = (typeof frontNames)[number];

/** Those that can stream responses; a Web Function always does. */
export const streamingFronts: readonly FrontName[] = ["rest", "url"];
/** The fronts that support a function for each handler. */
export const dividedFronts: readonly FrontName[] = ["http", "rest"];

export function frontNamed(name: FrontName, isStreaming: boolean): Front {
  switch (name) {
    case "http":
      return httpFront;
    case "web":
      return webFront;
    case "rest":
      return restFront(isStreaming);
    case "url":
      return urlFront(isStreaming);
  }
}

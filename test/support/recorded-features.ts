import { defineFeature, type Feature } from "keelson";

/** The features that modules have declared, in their order, since they were taken last. */
const recorded: Feature[] = [];

/** As `defineFeature`, for modules that keep their features to themselves. */
export const recordFeature: typeof defineFeature = (
  ...parameters: Parameters<typeof defineFeature>
) => {
  const feature = defineFeature(...parameters);
  recorded.push(feature);
  return feature as never; // safe: its own result
};

/** Gives the features that were declared since the last call. */
export function takeFeatures(): readonly Feature[] {
  return recorded.splice(0);
}

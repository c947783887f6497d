import { quoted } from "../../../base/errors/quoted.ts";
import type { Bounds, ConfigKeyDefinition } from "./key.ts";

type Fit = Pick<ConfigKeyDefinition, "type" | "options">;

export function typeMismatch({ type, options = [] }: Fit, value: unknown): string | undefined {
  switch (type) {
    case "number":
      return Number.isFinite(value) ? undefined : "is not a finite number";
    case "boolean":
      return typeof value === "boolean" ? undefined : "is not a boolean";
    case "select":
      return options.some((option) => option === value)
        ? undefined
        : `is not one of the options ${quoted(options)}`;
    case "text":
      return typeof value === "string" ? undefined : "is not a string";
  }
}

export function outOfBounds(bounds: Bounds | undefined, value: unknown): string | undefined {
  if (bounds === undefined || typeof value !== "number") return undefined;
  if (value < bounds.min) return `is below bounds.min ${bounds.min}`;
  if (value > bounds.max) return `is above bounds.max ${bounds.max}`;
  return undefined;
}

/** Returns `undefined` for hexadecimal, digit separators or other text. */
export function decimalFrom(text: string): number | undefined {
  const trimmed = text.trim();
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(trimmed)
    ? Number(trimmed)
    : undefined;
}

export function clamp(value: number, bounds: Bounds): number {
  return Math.min(Math.max(value, bounds.min), bounds.max);
}

export function named(definition: Pick<ConfigKeyDefinition, "encrypted">, value: unknown): string {
  return definition.encrypted ? "(not shown)" : quoted(value);
}

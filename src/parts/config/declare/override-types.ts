import type { ConfigKeyHandle } from "./key.ts";

interface NamedExports {
  readonly name: string;
}

/**
 * App-boot overrides of features, by key identifier. The compiler checks the values of keys whose
 * handles a feature returns, and editors complete their identifiers; `buildServer` checks the rest.
 */
export type OverridesOf<Features extends readonly NamedExports[]> = Readonly<
  Record<string, unknown>
> & {
  readonly [Override in KnownOverride<Features[number]> as Override["id"]]?: Override["value"];
};

type KnownOverride<Feature extends NamedExports> = Feature extends NamedExports
  ? string extends Feature["name"]
    ? never
    : {
        readonly [Member in keyof Feature]: OverrideOfHandles<Feature["name"], Feature[Member]>;
      }[keyof Feature]
  : never;

type OverrideOfHandles<Name extends string, Handles> =
  Handles extends Readonly<Record<string, ConfigKeyHandle<unknown>>>
    ? {
        [Key in keyof Handles & string]: {
          readonly id: `${Name}:config:${KebabCase<Key>}`;
          readonly value: Handles[Key] extends ConfigKeyHandle<infer Value>
            ? Exclude<Value, undefined>
            : never;
        };
      }[keyof Handles & string]
    : never;

/** Converts a name to kebab case, as `configKeyId` does at run time. */
type KebabCase<
  Name extends string,
  Done extends string = "",
  Before extends string = "",
> = Name extends `${infer Letter}${infer Rest}`
  ? KebabCase<
      Rest,
      `${Done}${BeginsWord<Before, Letter, Rest> extends true ? "-" : ""}${Lowercase<Letter>}`,
      Letter
    >
  : Done;

type BeginsWord<Before extends string, Letter extends string, Rest extends string> =
  IsCapital<Letter> extends true
    ? Before extends "" | "-" | "_" | "$"
      ? false
      : IsCapital<Before> extends true
        ? Rest extends `${infer Next}${string}`
          ? IsSmall<Next>
          : false
        : true
    : false;

type IsCapital<Letter extends string> = Letter extends Lowercase<Letter> ? false : true;
type IsSmall<Letter extends string> = Letter extends Uppercase<Letter> ? false : true;

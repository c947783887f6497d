import { describe, expect, test } from "vitest";
import type { ConfigKeyHandle } from "./key.ts";
import { configKeyId, hasKebabCase } from "./key-id.ts";
import type { OverridesOf } from "./override-types.ts";

/** The identifier as the type of overrides computes it: it has to be the text. */
type Id<Name extends string> = keyof OverridesOf<
  [{ name: "files"; config: Record<Name, ConfigKeyHandle<number>> }]
> &
  `files:${string}`;
const named = <const Name extends string>(name: Name, id: NoInfer<Id<Name>>): [string, string] => [
  name,
  id,
];

describe("configKeyId", () => {
  test.each([
    named("maxUploadSizeMb", "files:config:max-upload-size-mb"),
    named("quota", "files:config:quota"),
    named("maxURLLength", "files:config:max-url-length"),
    named("s3Bucket", "files:config:s3-bucket"),
    named("oauth2Token", "files:config:oauth2-token"),
    named("MaxSize", "files:config:max-size"),
    named("already-kebab", "files:config:already-kebab"),
    named("already-Kebab", "files:config:already-kebab"),
    named("PDFs", "files:config:pd-fs"),
    named("aB1C", "files:config:a-b1-c"),
    named(
      "isAConfigKeyWhoseNameIsSoLongThatNobodyWouldWriteItTwice",
      "files:config:is-a-config-key-whose-name-is-so-long-that-nobody-would-write-it-twice",
    ),
  ])("turns %s of feature files into %s", (name, id) => {
    expect(configKeyId("files", name)).toBe(id);
    expect(hasKebabCase(name)).toBe(true);
  });
});

describe("hasKebabCase", () => {
  test.each([
    "",
    "max_size",
    "2fast",
    "größe",
    "a b",
    "a--b",
    "-a",
    "a-",
    "$a",
    "a:b",
    "a#b",
    "a\n",
    "__proto__",
  ])("returns false for %j", (name) => {
    expect(hasKebabCase(name)).toBe(false);
  });
});

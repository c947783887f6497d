import { describe, expect, test } from "vitest";
import { configKeyId, hasKebabCase } from "./key-id.ts";

describe("configKeyId", () => {
  test.each([
    ["maxUploadSizeMb", "files:config:max-upload-size-mb"],
    ["quota", "files:config:quota"],
    ["maxURLLength", "files:config:max-url-length"],
    ["s3Bucket", "files:config:s3-bucket"],
    ["oauth2Token", "files:config:oauth2-token"],
    ["MaxSize", "files:config:max-size"],
    ["already-kebab", "files:config:already-kebab"],
  ])("%s of feature files is %s", (name, id) => {
    expect(configKeyId("files", name)).toBe(id);
    expect(hasKebabCase(name)).toBe(true);
  });
});

describe("hasKebabCase", () => {
  test.each(["", "max_size", "2fast", "größe", "a b", "a--b", "-a", "a-", "$a", "a:b", "a#b", "a\n", "__proto__"])(
    "%j has none",
    (name) => {
      expect(hasKebabCase(name)).toBe(false);
    },
  );
});

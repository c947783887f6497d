import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";

/** The rules of Redocly's recommended set that are turned off, each with its reason. */
const off = {
  "info-license": "off", // under which terms an API may be used is no part of what a server declares
} as const;

/** What two validators that are not keelson's find wrong with a document: nothing where it is valid. */
export async function problemsOf(document: object): Promise<string[]> {
  const { valid, errors } = await new Validator().validate(
    structuredClone(document) as Record<string, unknown>,
  );
  const config = await createConfig({ extends: ["recommended"], rules: off });
  const found = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: "/openapi.json",
    config,
  });
  return [
    ...(valid ? [] : [JSON.stringify(errors)]),
    ...found.map(({ severity, ruleId, message, location }) => {
      return `${severity} ${ruleId} at ${location[0]?.pointer ?? "#"}: ${message.split("\n")[0]}`;
    }),
  ];
}

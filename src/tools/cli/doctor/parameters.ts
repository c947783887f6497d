import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import type { ParameterReader } from "../../../app/runtime/adapters.ts";
import { readKeyRing } from "../../../app/server/boot-parameters.ts";
import {
  type ConfigParameter,
  formerParameters,
  parameterOverrides,
} from "../../../parts/config/declare/parameter-overrides.ts";
import type { NeededParameters } from "../../infra/needs.ts";
import { command } from "./command-line.ts";
import { type Check, doubtful, fine, type Outcome, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";

/** No outcome contains the values of parameters. */
export function parameterChecks(
  reader: ParameterReader,
  place: Place,
  { registry, environment }: DeclaredServer,
  { overrides, keyRing }: NeededParameters,
): Check[] {
  const checks: Check[] = [];
  if (overrides !== undefined) {
    checks.push({
      name: `parameters ${overrides}`,
      run: async () => {
        const parameters = await place.call("GetParametersByPath", overrides, () =>
          reader.read(overrides),
        );
        const { problems } = parameterOverrides(registry, overrides, parameters);
        const former = formerParameters(registry, overrides, parameters);
        if (problems.length === 0 && former.length > 0) return renamedOutcome(place, former);
        if (problems.length === 0) return fine(`overrides: ${parameters.length}, each valid`);
        const messages = problems.map(({ key, message, fix }) => `${key}: ${message}; ${fix}`);
        const fixes = problems.map(({ key, rule }) => parameterFix(place, key, rule, parameters));
        return wrong(messages.join("; "), ...fixes);
      },
    });
  }
  if (keyRing !== undefined) {
    checks.push({
      name: `key ring ${keyRing}`,
      run: async () => {
        const read = await place.call("GetParameter", keyRing, () => readKeyRing(reader, keyRing));
        return "keyRing" in read
          ? fine(`keys: ${read.keyRing.keys.size}, one of which seals`)
          : keyRingOutcome(place, keyRing, read.problem.rule, read.problem.message, environment);
      },
    });
  }
  return checks;
}

export function ringlessChecks({ options, registry, environment }: DeclaredServer): Check[] {
  const encrypted = [...registry.configKeys.values()].flatMap(({ id, definition }) =>
    definition.encrypted ? [id] : [],
  );
  if (options.keyRing !== undefined || encrypted.length === 0 || environment !== "production")
    return [];
  const message = `the server names none, so these keys cannot be set: ${encrypted.join(", ")}`;
  const fix = command("npx", "keelson", "key-ring", "create", "--parameter", "/app/key-ring");
  return [
    {
      name: "key ring",
      run: async () => doubtful(`${message}; name it as keyRing.parameter of buildServer`, fix),
    },
  ];
}

function parameterFix(
  place: Place,
  name: string,
  rule: string,
  parameters: readonly ConfigParameter[],
): string {
  if (["parameter-unknown", "parameter-twice"].includes(rule))
    return place.aws("delete-parameter", "--name", name);
  const type = parameters.some((parameter) => parameter.name === name && parameter.secure)
    ? "SecureString"
    : "String";
  return place.aws("put-parameter", "--overwrite", "--type", type, "--name", name, "--value", "…");
}

/**
 * During a rolling deployment both releases read a former name; later, a name without a key looks
 * like a mistake.
 */
function renamedOutcome(place: Place, former: ReturnType<typeof formerParameters>): Outcome {
  const messages = former.map(({ name, today, isRead }) =>
    isRead
      ? `${name} is read under a former name of its key, which today is ${today}`
      : `${name} is not read: there is ${today}`,
  );
  const fixes = former.flatMap(({ name, secure, today, isRead }) => [
    ...(isRead
      ? [
          place.aws(
            "put-parameter",
            "--type",
            secure ? "SecureString" : "String",
            "--name",
            today,
            "--value",
            "…",
          ),
        ]
      : []),
    place.aws("delete-parameter", "--name", name),
  ]);
  return doubtful(`${messages.join("; ")}; rename once the release before is gone`, ...fixes);
}

function keyRingOutcome(
  place: Place,
  parameter: string,
  rule: string,
  message: string,
  environment: DeclaredServer["environment"],
): Outcome {
  const create = command("npx", "keelson", "key-ring", "create", "--parameter", parameter);
  switch (rule) {
    case "key-ring-missing":
      // Other environments derive a ring from the development secret.
      return environment === "production"
        ? wrong("there is no such parameter", create)
        : doubtful(
            `there is no such parameter; in ${environment} a ring is made from the development secret`,
            create,
          );
    case "key-ring-readable":
      return wrong(
        `${message}: anybody who may read parameters reads the keys`,
        place.aws("delete-parameter", "--name", parameter),
        create,
      );
    default:
      // Excludes the values of the history, because they are keys.
      return wrong(
        `${message}; restore the previous version`,
        place.aws(
          "get-parameter-history",
          "--name",
          parameter,
          "--query",
          "Parameters[].[Version,LastModifiedDate,LastModifiedUser]",
        ),
      );
  }
}

import type { DeclaredServer } from "../../../app/registry/declared-server.ts";
import type { ParameterReader } from "../../../app/runtime/adapters.ts";
import { readKeyRing } from "../../../app/server/boot-parameters.ts";
import type { BootProblem } from "../../../base/errors/boot.ts";
import {
  type ConfigParameter,
  formerParameters,
  parameterOverrides,
} from "../../../parts/config/declare/parameter-overrides.ts";
import type { Needs } from "../../infra/needs.ts";
import { type Check, check, createKeyRing, doubtful, fine, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";

/** No outcome contains a parameter's value. */
export function parameterChecks(
  place: Place,
  reader: ParameterReader,
  { registry, environment }: DeclaredServer,
  { overrides, keyRing }: Needs["parameters"],
): Check[] {
  const { call } = place;
  const checks: Check[] = [];
  if (overrides !== undefined) {
    const look = async () => {
      const read = () => reader.read(overrides);
      const parameters = await call("GetParametersByPath", overrides, read);
      const { problems } = parameterOverrides(registry, overrides, parameters);
      if (problems.length > 0) {
        const messages = problems.map(({ key, message, fix }) => `${key}: ${message}; ${fix}`);
        const fixes = problems.map(({ key, rule }) => parameterFix(place, key, rule, parameters));
        return wrong(messages.join("; "), ...fixes);
      }
      const former = formerParameters(registry, overrides, parameters);
      if (former.length > 0) return renamedOutcome(place, former);
      return fine(`overrides: ${parameters.length}, each valid`);
    };
    checks.push(check(`parameters ${overrides}`, look));
  }
  if (keyRing !== undefined) {
    const look = async () => {
      const read = await call("GetParameter", keyRing, () => readKeyRing(reader, keyRing));
      return "keyRing" in read
        ? fine(`keys: ${read.keyRing.keys.size}, and one of them seals`)
        : keyRingOutcome(place, keyRing, read.problem, environment);
    };
    checks.push(check(`key ring ${keyRing}`, look));
  }
  return checks;
}

export function ringlessChecks({ options, registry, environment }: DeclaredServer): Check[] {
  const keys = [...registry.configKeys.values()].filter(({ definition }) => definition.encrypted);
  if (options.keyRing !== undefined || keys.length === 0 || environment !== "production") return [];
  const ids = keys.map(({ id }) => id).join(", ");
  const message = `the server names none, so these keys cannot be set: ${ids}; name it as keyRing.parameter of buildServer`;
  return [check("key ring", async () => doubtful(message, createKeyRing()))];
}

function parameterFix(
  place: Place,
  name: string,
  rule: string,
  parameters: readonly ConfigParameter[],
) {
  if (["parameter-unknown", "parameter-twice"].includes(rule))
    return place.aws("delete-parameter", { name });
  const type = typeOf(parameters.find((parameter) => parameter.name === name));
  return place.aws("put-parameter", { overwrite: true, type, name, value: "…" });
}

/**
 * Warns of parameters under a key's former name: both releases of a rolling deployment read it, but
 * once no key declares it, it looks like a mistake.
 */
function renamedOutcome(place: Place, former: ReturnType<typeof formerParameters>) {
  const messages = former.map(({ name, today, isRead }) =>
    isRead
      ? `${name} is read under a former name of its key, which today is ${today}`
      : `${name} is not read: there is ${today}`,
  );
  const fixes = former.flatMap((parameter) => {
    const remove = place.aws("delete-parameter", { name: parameter.name });
    const put = { type: typeOf(parameter), name: parameter.today, value: "…" };
    return parameter.isRead ? [place.aws("put-parameter", put), remove] : [remove];
  });
  return doubtful(
    `${messages.join("; ")}; rename once the previous release no longer runs`,
    ...fixes,
  );
}

function typeOf(parameter: Pick<ConfigParameter, "secure"> | undefined) {
  return parameter?.secure ? "SecureString" : "String";
}

function keyRingOutcome(
  place: Place,
  name: string,
  { rule, message }: BootProblem,
  environment: DeclaredServer["environment"],
) {
  const create = createKeyRing(name);
  if (rule === "key-ring-missing") {
    const missing = "there is no such parameter";
    if (environment === "production") return wrong(missing, create);
    const made = `in ${environment} a ring is made from the development secret`;
    return doubtful(`${missing}; ${made}`, create);
  }
  if (rule === "key-ring-readable") {
    const danger = "anyone with permission to read parameters can read the keys";
    return wrong(`${message}: ${danger}`, place.aws("delete-parameter", { name }), create);
  }
  // Omits values from the history, because they are keys.
  const query = "Parameters[].[Version,LastModifiedDate,LastModifiedUser]";
  const history = place.aws("get-parameter-history", { name, query });
  return wrong(`${message}; restore the previous version`, history);
}

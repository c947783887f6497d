import type * as Module from "./index.ts";

type Class = typeof Module.ClaimLayer;

/**
 * The `ClaimLayer` of `keelson/claim-layer`, loaded with its first use: whoever adopts a Middy handler need not have installed
 * Powertools Idempotency. A bundle does not hold what is loaded so.
 *
 * @throws Error with its first use, in a bundle and without Powertools Idempotency.
 */
export function loadedClaimLayer(load: () => typeof Module = loadModule): Class {
  // Safe: every use of it is one of the class. A function can be called by `new`, and its `prototype` may be another's.
  const standIn = function ClaimLayer() {} as unknown as Class;
  const proxy: Class = new Proxy(standIn, {
    get: (_, name) => Reflect.get(load().ClaimLayer, name),
    construct: (_, options: ConstructorParameters<Class>, derived) =>
      Reflect.construct(
        load().ClaimLayer,
        options,
        derived === proxy ? load().ClaimLayer : derived,
      ),
  });
  return proxy;
}

function loadModule(): typeof Module {
  try {
    // Safe: it is the entry point of this package.
    return process.getBuiltinModule("node:module").createRequire(import.meta.url)(
      "keelson/claim-layer",
    ) as typeof Module;
  } catch (cause) {
    throw new Error(
      "keelson/middy: ClaimLayer cannot be loaded; npm i @aws-lambda-powertools/idempotency, and in a bundle import it from keelson/claim-layer",
      { cause },
    );
  }
}

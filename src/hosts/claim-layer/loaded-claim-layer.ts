import type * as Module from "./index.ts";

type Class = typeof Module.ClaimLayer;

/**
 * Returns a proxy of `ClaimLayer` that loads the class at first use, because a project that adopts
 * a Middy handler does not need Powertools Idempotency. A bundle does not contain the class.
 *
 * @throws Error at first use, in a bundle or without Powertools Idempotency.
 */
export function loadedClaimLayer(load: () => typeof Module = loadModule): Class {
  // Safe: the proxy forwards every use to the class. Its target is a function, which allows `new`
  // and the `prototype` of another class.
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
    // Safe: `keelson/claim-layer` is an entry point of this package.
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

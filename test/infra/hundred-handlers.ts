import { access, buildServer, defineFeature } from "../../src/index.ts";

const handler = async () => 1;

/** Too many handlers for one template with a function each. */
export const server = buildServer({
  features: ["first", "second"].map((feature) =>
    defineFeature(feature, (r) => {
      r.table(`${feature}-rows`, { partitionKey: "pk", sortKey: "sk", tenant: true });
      for (let index = 0; index < 50; index += 1)
        r.write(`row.write${index}`, {
          route: `POST /${feature}/${index}`,
          access: access.everyone,
          handler,
        });
    }),
  ),
});

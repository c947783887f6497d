import { access, buildServer, defineFeature } from "keelson";
import { runContainer } from "keelson/container";
import { lambdaHttp } from "keelson/lambda";

const hello = defineFeature("hello", (r) => {
  r.query("greeting.show", {
    route: "GET /hello",
    access: access.everyone,
    handler: () => ({ text: "hello" }),
  });
});
export const server = buildServer({ features: [hello] });

export const http = lambdaHttp(server);
if (process.argv[1] === import.meta.filename) await runContainer(server);

// A CDK app with the generated templates: `cdk deploy --all --app "node cdk-app.mjs"`. It does not add a resource yet.
// Pass the values that main.tf passes: `--parameters orders-prod-functions:UserPool=…`, and so on.
import { join } from "node:path";
import { App, Stack } from "aws-cdk-lib";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";

const app = new App();
const folder = process.env.TEMPLATES ?? join(import.meta.dirname, "infra/generated");
for (const part of ["data", "functions"]) {
  const stack = new Stack(app, `orders-prod-${part}`);
  new CfnInclude(stack, "Generated", {
    templateFile: join(folder, `${part}-prod.json`),
    preserveLogicalIds: true,
  });
}

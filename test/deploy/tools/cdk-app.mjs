// A CDK app that includes a template unchanged: `cdk synth --app "node cdk-app.mjs <template>"`.
import { App, DefaultStackSynthesizer, Stack } from "aws-cdk-lib";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";

const [templateFile] = process.argv.slice(2);
// Without the parameter and the rule by which a deployment looks for the CDK's own bucket.
const synthesizer = new DefaultStackSynthesizer({ generateBootstrapVersionRule: false });
new CfnInclude(new Stack(new App(), "Included", { synthesizer }), "Template", { templateFile });

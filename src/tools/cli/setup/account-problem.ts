/** The SDK's clients report that one of these is missing, but not how to get it. */
type MissingAccount = "region" | "credentials";

const fixes: Readonly<Record<MissingAccount, string>> = {
  region: "no region is set; export AWS_REGION=eu-west-1, or another region",
  credentials: "no AWS credentials are found; run aws configure or aws sso login",
};

/** Looks for a missing region or missing credentials in an error and its causes. */
export function missingAccount(error: unknown): MissingAccount | undefined {
  for (const { message, name } of withCauses(error)) {
    if (message === "Region is missing") return "region";
    if (name === "CredentialsProviderError") return "credentials";
  }
  return undefined;
}

/** One line with the fix; `undefined` for any other error. */
export function accountProblem(error: unknown): string | undefined {
  const missing = missingAccount(error);
  if (missing !== undefined) return fixes[missing];
  const errors = withCauses(error);
  // The first error may name the table, which DynamoDB's error does not, or give its own advice.
  const message = String(errors[0]?.message);
  const isNoTable = errors.some(({ name }) => name === "ResourceNotFoundException");
  return isNoTable && !message.includes("keelson doctor") ? `${message}: ${noTable}` : undefined;
}

const noTable =
  "a table does not exist; set the deployment's variables, such as AWS_REGION and KEELSON_TABLE_ONCE, or deploy it. keelson doctor <module> lists the tables";

function withCauses(error: unknown): Error[] {
  return error instanceof Error ? [error, ...withCauses(error.cause)] : [];
}

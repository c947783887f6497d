/** The SDK's clients report that one of these is missing, but not how to get it. */
type MissingAccount = "region" | "credentials";

const fixes: Readonly<Record<MissingAccount, string>> = {
  region: "no region is set; export AWS_REGION=eu-west-1, or another region",
  credentials: "no AWS credentials are found; run aws configure or aws sso login",
};

/** Looks for a missing region or missing credentials in an error and its causes. */
export function missingAccount(error: unknown): MissingAccount | undefined {
  let found = error;
  while (found instanceof Error) {
    if (found.message === "Region is missing") return "region";
    if (found.name === "CredentialsProviderError") return "credentials";
    found = found.cause;
  }
  return undefined;
}

/** One line with the fix; `undefined` for any other error. */
export function accountProblem(error: unknown): string | undefined {
  const missing = missingAccount(error);
  return missing && fixes[missing];
}

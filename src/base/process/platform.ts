// The only module that reads the variables with which a platform identifies itself to a process.

export type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the name of the Lambda event function that the process runs. */
export function eventFunctionName(variables: Variables): string | undefined {
  return variables["AWS_LAMBDA_FUNCTION_NAME"];
}

/** Returns the `host:port` on which Lambda expects a Web Function to listen. */
export function webFunctionEndpoint(variables: Variables): string | undefined {
  return variables["AWS_LAMBDA_HTTP_ENDPOINT"];
}

/** Whether the process runs on Lambda, as an event function or as a Web Function. */
export function isOnLambda(variables: Variables): boolean {
  return (eventFunctionName(variables) ?? webFunctionEndpoint(variables)) !== undefined;
}

/** Whether a request waits for this process to start, unlike with provisioned concurrency. */
export function isStartedOnDemand(variables: Variables): boolean {
  const { AWS_LAMBDA_INITIALIZATION_TYPE: kind = "on-demand" } = variables;
  return kind === "on-demand" || webFunctionEndpoint(variables) !== undefined;
}

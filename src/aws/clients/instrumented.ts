/** Whether an OpenTelemetry instrumentation has wrapped and marked the `send` of an AWS client. */
export function isInstrumented({ send }: { readonly send: object }): boolean {
  return "__wrapped" in send;
}

/** Whether an instrumentation of OpenTelemetry has wrapped what a client of AWS sends with: it marks what it wraps. */
export function isInstrumented({ send }: { readonly send: object }): boolean {
  return "__wrapped" in send;
}

/**
 * Returns whether an OpenTelemetry instrumentation has wrapped the `send` of an AWS client. The
 * instrumentation marks the functions that it wraps.
 */
export function isInstrumented({ send }: { readonly send: object }): boolean {
  return "__wrapped" in send;
}

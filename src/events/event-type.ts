/** Whether a text has the shape of an event's type (specification 2.8). */
export function isEventType(type: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/.test(type);
}

/** Copies the members that are not `undefined`, so that the others are absent. */
export function defined<Members extends object>(
  members: Members,
): { readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  // The cast is safe: each member is one of the given members.
  return Object.fromEntries(given) as Partial<Members> as never;
}

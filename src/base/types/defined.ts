/** Copies the members that have a value, because a member of `undefined` is not an absent one. */
export function defined<Members extends object>(
  members: Members,
): { readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  // Safe: each member is one of the given members.
  return Object.fromEntries(given) as Partial<Members> as never;
}

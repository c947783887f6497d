/** Replaces properties of objects. Returns a function that restores them. */
export function replaced(
  ...changes: readonly (readonly [place: object, name: string, value: unknown])[]
): () => void {
  const before = changes.map(
    ([place, name]) => [place, name, Object.getOwnPropertyDescriptor(place, name)] as const,
  );
  for (const [place, name, value] of changes)
    Object.defineProperty(place, name, { value, ...likeAssigned });
  return () => {
    for (const [place, name, descriptor] of before) {
      Reflect.deleteProperty(place, name);
      if (descriptor !== undefined) Object.defineProperty(place, name, descriptor);
    }
  };
}

const likeAssigned = { configurable: true, writable: true, enumerable: true };

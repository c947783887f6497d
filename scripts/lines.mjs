/** Returns a function that maps an offset in a string to its line, from 1. */
export function lineCounter(text) {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}

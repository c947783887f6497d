export interface JsonBounds {
  readonly depth: number;
  /** Maximum number of commas and opening brackets, which is about the number of values. */
  readonly values: number;
  readonly members: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Above this number, counting commas takes longer than scanning the text. */
const fewCommas = 65_536;
/** Characters scanned singly after an escape: the next is likely near, and a search is slower. */
const nearby = 256;

/**
 * Returns the bound that the JSON exceeds. Invalid JSON may pass. Skips long strings, so it always
 * takes less time than parsing (`json-hostile` in `bench/results.json`).
 */
export function exceededBound(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  const { depth, values, members } = bounds;
  // In most cases, counting characters proves that no bound is exceeded.
  const brackets = countUpTo(text, "{", depth) + countUpTo(text, "[", depth);
  if (brackets > depth || countUpTo(text, ":", members) >= members)
    return lookThrough(text, bounds);
  const mostCommas = Math.min(fewCommas, values - brackets);
  return countUpTo(text, ",", mostCommas) > mostCommas ? lookThrough(text, bounds) : undefined;
}

function countUpTo(text: string, character: string, most: number): number {
  let count = 0;
  for (
    let at = text.indexOf(character);
    at !== -1 && count <= most;
    at = text.indexOf(character, at + 1)
  )
    count += 1;
  return count;
}

function lookThrough(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  const afterString = stringEnds(text);
  /** Number of commas in the open object of each depth, -Infinity for a list. */
  const members = new Float64Array(bounds.depth + 1);
  let [depth, values] = [0, 0];
  for (let index = 0; index < text.length; ) {
    const character = text.charCodeAt(index);
    index += 1;
    // Skips a number in a separate loop, because it may be as long as the body.
    if (isOfNumber(character)) {
      while (isOfNumber(text.charCodeAt(index))) index += 1;
      continue;
    }
    if (character === quote) index = afterString(index);
    else if (character === comma) {
      values += 1;
      members[depth] = (members[depth] as number) + 1; // safe: the array has an element for each allowed depth
      if (values > bounds.values) return "values";
      if ((members[depth] as number) >= bounds.members) return "members";
    } else if (character === openObject || character === openList) {
      depth += 1;
      values += 1;
      if (depth > bounds.depth) return "depth";
      if (values > bounds.values) return "values";
      members[depth] = character === openObject ? 0 : Number.NEGATIVE_INFINITY;
    } else if ((character === closeObject || character === closeList) && depth > 0) depth -= 1;
  }
  return undefined;
}

function isOfNumber(character: number): boolean {
  return character > comma && character < openList;
}

/** Maps the position after a string's first quote to that after its last; in ascending order. */
function stringEnds(text: string): (from: number) => number {
  const { length } = text;
  let nextQuote = -1;
  let nextEscape = -1;
  let byCharacterUntil = 0;
  return (from) => {
    let index = from;
    while (index < length) {
      // Scans by character while an escape is near, including in the next strings.
      const until = Math.min(byCharacterUntil, length);
      while (index < until) {
        const character = text.charCodeAt(index);
        index += 1;
        if (character === quote) return index;
        if (character === backslash) {
          index += 1;
          byCharacterUntil = index + nearby;
        }
      }
      if (index < byCharacterUntil) continue;
      // Searches each position once: many quotes and one distant escape would cost a search each.
      if (nextEscape < index) nextEscape = placeOf(text, "\\", index);
      if (nextQuote < index) nextQuote = placeOf(text, '"', index);
      if (nextQuote <= nextEscape) return nextQuote + 1;
      index = nextEscape;
      byCharacterUntil = index + nearby;
    }
    return length;
  };
}

function placeOf(text: string, character: string, from: number): number {
  const place = text.indexOf(character, from);
  return place === -1 ? text.length : place;
}

/** What a JSON text may hold: what is beyond is refused before it is parsed. */
export interface JsonBounds {
  /** How deep objects and lists may stand in one another. */
  readonly depth: number;
  /** How many commas and brackets there may be in all: about as many as values. */
  readonly values: number;
  /** How many members one object may have. */
  readonly members: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
/** To count more takes longer than to look through the text. */
const fewCommas = 65_536;
/** After an escape it is gone on by character for so long, since the next is likely near: looking for each takes longer. */
const nearby = 256;

/**
 * Tells which bound a JSON text exceeds; `undefined` where none. A text that is no JSON may pass: parsing tells. It takes
 * less than parsing does, whatever the text (`json-hostile` in `bench/results.json`): long strings are jumped over.
 */
export function exceededBound(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  const { depth, values, members } = bounds;
  // What is found by counting alone needs no look at each character.
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
  /** Commas of the objects that are open, from the outside in; those of lists do not count. */
  const members = new Float64Array(bounds.depth + 1);
  let [depth, values] = [0, 0];
  for (let index = 0; index < text.length; ) {
    const character = text.charCodeAt(index);
    index += 1;
    // Numbers, which may be as long as a body, in a loop of their own.
    if (isOfNumber(character)) {
      while (isOfNumber(text.charCodeAt(index))) index += 1;
      continue;
    }
    if (character === quote) index = afterString(index);
    else if (character === comma) {
      values += 1;
      members[depth] = (members[depth] as number) + 1; // safe, here and below: as many as levels
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

/** Gives the place behind a string, for the place behind its first quote. Places have to be asked for in their order. */
function stringEnds(text: string): (from: number) => number {
  const { length } = text;
  let nextQuote = -1;
  let nextEscape = -1;
  let byCharacterUntil = 0;
  return (from) => {
    let index = from;
    while (index < length) {
      // By character, for as long as an escape is near: over the next strings, too.
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
      // Each is looked for once: a text of many quotes and one far escape would be searched again and again.
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

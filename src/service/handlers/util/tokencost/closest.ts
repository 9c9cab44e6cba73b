/** Up to `limit` of `names` that look most like `word`, best first; those that hardly do are left out. */
export function closest(word: string, names: readonly string[], limit: number): string[] {
  const wanted = pairsOf(word)
  return names
    .map((name) => ({ name, likeness: likeness(wanted, pairsOf(name)) }))
    .filter((each) => each.likeness >= 0.4)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, limit)
    .map((each) => each.name)
}

/** Sørensen–Dice: 0 for no common pair of neighbouring characters, 1 for all. */
function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let common = 0
  for (const pair of a) if (b.has(pair)) common++
  return (2 * common) / (a.size + b.size)
}

function pairsOf(text: string): Set<string> {
  const padded = ` ${text.toLowerCase()} `
  return new Set(Array.from({ length: padded.length - 1 }, (_, index) => padded.slice(index, index + 2)))
}

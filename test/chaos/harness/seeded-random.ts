/** Reproducible randomness: the same seed gives the same numbers. */
export interface SeededRandom {
  /** An integer from `least` up to, not including, `end`. */
  between(least: number, end: number): number
  chance(probability: number): boolean
  oneOf<T>(choices: readonly T[]): T
}

/** mulberry32: small, and good enough to choose moments. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, end: number): number => least + Math.floor(next() * (end - least))
  return {
    between,
    chance: (probability) => next() < probability,
    oneOf: (choices) => {
      const [choice] = choices.slice(between(0, choices.length))
      if (choice === undefined) throw new Error('there is no choice')
      return choice
    },
  }
}

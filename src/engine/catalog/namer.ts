/** Assigns unique names: the first free candidate, otherwise the last candidate with a number. */
export type Namer = (...wishes: readonly [string, ...string[]]) => string

/**
 * A namer that has given no name yet, and never gives one that is `reserved`. Things are named in the order of the
 * file, so an entry that is added below never renames one above it.
 *
 * @example
 * const name = namer()
 * name('paid_a_b') // 'paid_a_b'
 * name('paid_a_b') // 'paid_a_b_2'
 */
export function namer(reserved: readonly string[] = []): Namer {
  const taken = new Set(reserved)
  return (...wishes) => {
    const last = wishes.at(-1) ?? wishes[0]
    let name = wishes.find((wish) => !taken.has(wish)) ?? last
    for (let number = 2; taken.has(name); number += 1) name = `${last}_${number}`
    taken.add(name)
    return name
  }
}

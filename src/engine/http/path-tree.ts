/** Paths with templates, by their segments: to look one up takes as long for thousands as for one. */
export class PathTree {
  readonly #fixed = new Map<string, PathTree>()
  /** By what follows the template in its segment: `{id}.pdf`. */
  readonly #templates = new Map<string, PathTree>()
  #isEnd = false

  add(path: string): void {
    this.#grow(path.split('/'))
  }

  has(path: string): boolean {
    return this.#holds(path.split('/'), 0)
  }

  #grow([segment, ...rest]: readonly string[]): void {
    if (segment === undefined) {
      this.#isEnd = true
      return
    }
    const [, ending] = /^\{[^{}]*\}(.*)$/.exec(segment) ?? []
    const tree = ending === undefined ? below(this.#fixed, segment) : below(this.#templates, ending)
    tree.#grow(rest)
  }

  #holds(segments: readonly string[], at: number): boolean {
    const segment = segments[at]
    if (segment === undefined) return this.#isEnd
    const fixed = this.#fixed.get(segment)
    if (fixed !== undefined && fixed.#holds(segments, at + 1)) return true
    for (const [ending, tree] of this.#templates)
      if (segment.length > ending.length && segment.endsWith(ending) && tree.#holds(segments, at + 1))
        return true
    return false
  }
}

function below(branches: Map<string, PathTree>, key: string): PathTree {
  const known = branches.get(key)
  if (known !== undefined) return known
  const made = new PathTree()
  branches.set(key, made)
  return made
}

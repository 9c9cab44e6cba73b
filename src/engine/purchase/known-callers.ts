/** How long a credential counts as known after the upstream has accepted it. */
const KNOWN_MS = 600_000
/** Credentials that are remembered; the one that was used first is forgotten first. */
const MOST_KNOWN = 10_000

/** The callers whom an upstream has recognized lately, by digest: others may try a few times only. */
export class KnownCallers {
  readonly #until = new Map<string, number>()

  has(digest: string, now: number): boolean {
    return (this.#until.get(digest) ?? 0) > now
  }

  add(digest: string, now: number): void {
    this.#until.delete(digest)
    this.#until.set(digest, now + KNOWN_MS)
    for (const oldest of this.#until.keys()) {
      if (this.#until.size <= MOST_KNOWN) break
      this.#until.delete(oldest)
    }
  }

  delete(digest: string): void {
    this.#until.delete(digest)
  }
}

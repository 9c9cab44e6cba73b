import type { Source } from '../../engine/index.ts'

export interface SearchHit {
  readonly url: string
  readonly title: string
}

/** Finds pages by words. Throws `Failure` as `JsonSource` does. */
export interface SearchEngine {
  readonly source: Source
  /** The best first, as the engine gave them: addresses are unchecked. */
  search(query: string, signal: AbortSignal): Promise<readonly SearchHit[]>
}

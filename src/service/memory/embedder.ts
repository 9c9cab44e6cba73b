/** Puts texts into a space where those that belong together are near. */
export interface Embedder {
  /** Names the space: vectors of two names are never compared. */
  readonly name: string
  /** Whether it knows meanings, or only words. */
  readonly semantic: boolean
  /** One vector of length 1 for each text. Throws `Failure`: nothing is charged then. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>
}

export async function embedOne(embedder: Embedder, text: string, signal: AbortSignal): Promise<Float32Array> {
  const [vector] = await embedder.embed([text], signal)
  if (vector === undefined) throw new Error(`${embedder.name} gave no vector`)
  return vector
}

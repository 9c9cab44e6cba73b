/** Puts texts into a space where those that belong together are near. */
export interface Embedder {
  /** Names the space: vectors of two names are never compared. */
  readonly name: string
  /** Whether it knows meanings, or only words. */
  readonly semantic: boolean
  /** Languages (BCP 47) whose texts it knows by meaning; undefined: those of an outside model, which does not say. */
  readonly languages: readonly string[] | undefined
  /** Cosine from which two texts without a common word count as similar. */
  readonly floor: number
  /** Weight of nearness in the score of a memory, from 0 to 1; the rest is the weight of words. */
  readonly weight: number
  /** One vector of length 1 for each text. Throws `Failure`: nothing is charged then. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly Float32Array[]>
}

export async function embedOne(embedder: Embedder, text: string, signal: AbortSignal): Promise<Float32Array> {
  const [vector] = await embedder.embed([text], signal)
  if (vector === undefined) throw new Error(`${embedder.name} gave no vector`)
  return vector
}

/** How it finds texts, in words for the operator. */
export function wayOf({ semantic, languages }: Embedder): string {
  if (!semantic) return 'their words'
  return languages === undefined ? 'meaning' : `meaning in ${languages.join(', ')}, else by their words`
}

/** In pgvector's format, which keeps seven digits. */
export function toLiteral(vector: Float32Array): string {
  return `[${Array.from(vector, (value) => String(Number(value.toPrecision(8)))).join(',')}]`
}

/** If all components cancel out, the first direction represents the text. */
export function toUnit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  if (length === 0) return Float32Array.of(1, ...vector.slice(1))
  return vector.map((value) => value / length)
}

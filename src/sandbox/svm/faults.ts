import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'

/** What a node does wrong, for tests. */
export type Fault = FaultScope &
  (
    | { readonly kind: 'slow'; readonly ms: number }
    /** Does what it is told, and closes the connection. */
    | { readonly kind: 'lose' }
    /** Says that there is nothing: it forgets a signature or an account, or lies. */
    | { readonly kind: 'omit' }
    /** Answers with an error, and does nothing. */
    | { readonly kind: 'refuse' }
    /** Says that it has taken a transaction, which nobody sees again. */
    | { readonly kind: 'drop' }
  )

/** Which calls are concerned. */
interface FaultScope {
  readonly method: string
  /** Only calls whose parameters contain this text, such as a signature; default: all. */
  readonly about?: string
  /** How often; default: until faults are cleared. */
  readonly times?: number
}

const KINDS: ReadonlySet<Json> = new Set(['slow', 'lose', 'omit', 'refuse', 'drop'])

/** The faults of a node, in the order in which they were set. */
export class Faults {
  #faults: { readonly fault: Fault; left: number }[] = []

  set(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? Infinity })
  }

  clear(): void {
    this.#faults = []
  }

  /** The fault of this call, which counts as one of its times. */
  take(method: string, params: Json): Fault | undefined {
    const text = JSON.stringify(params)
    const found = this.#faults.find(
      ({ fault, left }) =>
        left > 0 && fault.method === method && (fault.about === undefined || text.includes(fault.about)),
    )
    if (found !== undefined) found.left -= 1
    return found?.fault
  }
}

export function isFault(value: Json | undefined): value is Fault & JsonObject {
  if (!isJsonObject(value)) return false
  const { kind = null, method, ms } = value
  return KINDS.has(kind) && typeof method === 'string' && (kind !== 'slow' || typeof ms === 'number')
}

/** The same answer with nothing in it. */
export function omitted(result: Json): Json {
  if (Array.isArray(result)) return []
  if (!isJsonObject(result) || result['value'] === undefined) return null
  const { value } = result
  return { ...result, value: Array.isArray(value) ? value.map(() => null) : null }
}

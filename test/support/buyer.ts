import { isJsonObject, type JsonObject } from '../../src/engine/base/json.ts'
import { addressOf, nonceOf, stockFetch, type Hex } from './payment.ts'
import type { Secrets } from './secrets.ts'

/** A buyer with a wallet and `@x402/fetch` that records what it signs. */
export interface Buyer {
  readonly address: Hex
  /** Nonces of the payments sent so far. */
  readonly nonces: () => readonly string[]
  readonly buy: (url: string, init?: RequestInit) => Promise<Bought>
}

export interface Bought {
  readonly status: number
  /** The member of the body that counts the runs of the work. */
  readonly run: unknown
  /** Transaction of the receipt. */
  readonly transaction: unknown
}

export function openBuyer(key: Hex, secrets: Secrets): Buyer {
  const nonces: string[] = []
  const notingWith =
    (signal: AbortSignal | null | undefined): typeof fetch =>
    async (input, init) => {
      const request = new Request(input, init)
      const header = request.headers.get('payment-signature')
      if (header !== null) {
        secrets.addHeader(header)
        nonces.push(nonceOf(header))
      }
      // The signal of a request that was made from another one is lost when that one is collected as garbage.
      const response = await (signal ? fetch(request, { signal }) : fetch(request))
      if (header !== null) await secrets.scanResponse(response.clone())
      return response
    }
  return {
    address: addressOf(key),
    nonces: () => nonces,
    buy: async (url, init) => readBought(await stockFetch(key, notingWith(init?.signal))(url, init)),
  }
}

export async function readBought(response: Response): Promise<Bought> {
  const body = asObject(await response.text())
  const receipt = asObject(Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString())
  return { status: response.status, run: body['run'], transaction: receipt['transaction'] }
}

function asObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? (value as JsonObject) : {}
  } catch {
    return {}
  }
}

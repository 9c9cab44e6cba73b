import type { JsonObject } from '../../json.ts'
import type { Entry, Receipt } from '../../ledger/entry.ts'
import type { ToolBinding } from '../protocol.ts'
import type { ToolDemand } from '../tool-demand.ts'

/** Payment scheme, transport MCP: the challenge stands in the result, for an error could not carry x402's beside it. */
export function demandOf(challenge: JsonObject): ToolDemand {
  return {
    content: {},
    meta: { 'org.paymentauth/payment-required': { httpStatus: 402, challenges: [challenge] } },
  }
}

/** Where clients put what they have signed. */
export const CREDENTIAL = 'org.paymentauth/credential'

/** `make` writes the receipt as HTTP has it; here it names its challenge too. */
export function bindTools(
  method: { readonly name: string; readonly intent: string },
  detect: ToolBinding['detect'],
  make: (entry: Entry, receipt: Receipt) => JsonObject,
): ToolBinding {
  return {
    capabilities: { experimental: { payment: { methods: { [method.name]: { intents: [method.intent] } } } } },
    detect,
    receipt: (entry, receipt, status) => {
      if (status < 200 || status >= 300) return {}
      const challengeId = entry.key.slice(entry.key.indexOf(':') + 1)
      return { 'org.paymentauth/receipt': { ...make(entry, receipt), challengeId } }
    },
    failure: () => ({}),
  }
}

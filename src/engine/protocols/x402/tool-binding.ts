import type { JsonObject } from '../../json.ts'
import type { Detection, ToolBinding } from '../protocol.ts'
import type { ToolDemand } from '../tool-demand.ts'
import { failureResponse, settlementResponse } from './settlement-response.ts'
import { decodePayload, readPayload, type Decoded } from './payload.ts'

/** The name of x402's extension of MCP, which only the newest revision and few clients know. */
const EXTENSION = 'org.x402/payment'

/** x402 v2, transport MCP: both bindings, and the place where some clients look for the first. */
export function demandOf(paymentRequired: JsonObject): ToolDemand {
  return {
    content: paymentRequired,
    meta: { 'x402/error': paymentRequired },
    extension: { name: EXTENSION, result: { resultType: 'payment_required', paymentRequired } },
  }
}

/** `take` makes a payment of what could be read. */
export function bindTools(take: (decoded: Decoded) => Detection): ToolBinding {
  return {
    capabilities: { extensions: { [EXTENSION]: {} } },
    detect: ({ 'x402/payment': sent }) => {
      if (sent === undefined) return { kind: 'none' }
      // Some clients send the text of the header.
      return take(typeof sent === 'string' ? decodePayload(sent.trim()) : readPayload(sent))
    },
    receipt: (_, receipt) => ({ 'x402/payment-response': settlementResponse(receipt) }),
    failure: (entry, code) => ({ 'x402/payment-response': failureResponse(entry, code) }),
  }
}

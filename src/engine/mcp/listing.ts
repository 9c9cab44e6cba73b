import type { ToolFace } from '../catalog/catalog.ts'
import { inputSchema } from '../catalog/parameter.ts'
import { sentence, useWhen } from '../documents/wording.ts'
import { compact, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { ServedOperation } from '../purchase/execution.ts'

/** One entry of `tools/list`. */
export interface ToolDescription {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly annotations: JsonObject
  readonly _meta?: JsonObject
}

/** What a model and its client read of a tool before they call it. */
export function describeTool(
  face: ToolFace,
  served: ServedOperation,
  protocols: readonly Protocol[],
): ToolDescription {
  const { operation, tool, parameters } = face
  const { price } = operation
  return {
    name: tool.name,
    description: [
      sentence(operation.summary),
      ...(operation.useWhen === undefined ? [] : [useWhen(operation.useWhen)]),
      ...(operation.description === undefined ? [] : [sentence(operation.description)]),
      costOf(face, protocols),
    ].join(' '),
    inputSchema: inputSchema(parameters),
    annotations: annotationsOf(face, served),
    // Read by the client of Cloudflare's agents, which tells its model.
    ...(price === undefined
      ? {}
      : {
          _meta: { 'agents-x402/paymentRequired': true, 'agents-x402/priceUSD': Number(formatPrice(price)) },
        }),
  }
}

function costOf({ operation: { price, settle }, tool }: ToolFace, protocols: readonly Protocol[]): string {
  if (price === undefined)
    return tool.requires === 'signer' ? 'Free; needs a sign-in-with-x proof of your wallet.' : 'Free.'
  const ways = protocols.map(({ name }) => (name === 'mpp' ? 'MPP' : name)).join(' or ')
  const first = settle === 'upfront' ? ', charged before the work' : ''
  return `Costs ${formatPrice(price)} USD per call${ways === '' ? '' : `, paid by ${ways}`}${first}.`
}

/** Hints in MCP's words: by nature a tool reads, unless its handler stores; storing replaces nothing. */
function annotationsOf({ operation, tool }: ToolFace, { store }: ServedOperation): JsonObject {
  const { readOnly, destructive, idempotent, openWorld } = tool.annotations
  const reads = readOnly ?? store === undefined
  return compact({
    title: operation.summary,
    readOnlyHint: reads,
    destructiveHint: destructive ?? false,
    idempotentHint: idempotent ?? reads,
    openWorldHint: openWorld ?? operation.sources.length > 0,
  })
}

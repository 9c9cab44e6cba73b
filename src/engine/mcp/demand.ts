import type { JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import type { Refusal } from '../protocols/protocol.ts'
import { problemMembers } from '../purchase/problem.ts'
import { NO_OFFER } from '../purchase/problem.ts'
import { failed, refused, type ToolReply } from './result.ts'
import type { ServedTool } from './toolbox.ts'

export interface Unpaid {
  readonly tool: ServedTool
  readonly extensions: ReadonlySet<string>
}

/**
 * The answer to a call without a payment that can be taken: every protocol's offer, each where its clients look for it. A
 * client that knows an extension of MCP for it gets that instead.
 */
export function demand(
  { tool, extensions }: Unpaid,
  scope: string,
  { code, detail }: Refusal,
  meta: JsonObject,
): ToolReply {
  const { face, challenges, served } = tool
  if (challenges.length === 0) return failed(NO_OFFER, 'no', meta)
  const demands = challenges.map((challenge) => challenge.demand({ resource: face.url, scope, error: code }))
  const known = demands.find(({ extension }) => extension !== undefined && extensions.has(extension.name))
  if (known?.extension !== undefined) return { status: 402, result: { ...known.extension.result } }
  const { price } = served.operation
  const content = {
    ...joined(demands.map((each) => each.content)),
    ...problemMembers(code, detail, 'no'),
    ...(price === undefined ? {} : { price: { amount: formatPrice(price), currency: 'USD' } }),
  }
  return refused(402, content, joined([...demands.map((each) => each.meta), meta]))
}

function joined(objects: readonly JsonObject[]): JsonObject {
  return objects.reduce<JsonObject>((all, each) => ({ ...all, ...each }), {})
}

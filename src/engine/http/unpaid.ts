import type { Route } from '../catalog/catalog.ts'
import { charging, CLIENT, isUpfront } from '../documents/wording.ts'
import { type ErrorCode, ERRORS } from '../errors.ts'
import { asciiJson, type JsonObject } from '../json.ts'
import { formatPrice } from '../money.ts'
import type { Challenge } from '../protocols/protocol.ts'
import type { Foresight } from './foresight.ts'
import { problemType } from '../purchase/problem.ts'
import { PROBLEM_TYPE, type Reply } from './reply.ts'

/** Answers 402 for one route: everything but the offers' moving parts is serialised once. */
export type Unpaid = (request: UnpaidRequest) => Reply

export interface UnpaidRequest extends Foresight {
  readonly code: ErrorCode
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface UnpaidSettings {
  readonly baseUrl: string
  /** Path of a document that explains the routes. */
  readonly docs: string
}

/** Compiles the 402 of a route from the challenges of every protocol it can be paid with. */
export function compileUnpaid(
  route: Route,
  challenges: readonly Challenge[],
  settings: UnpaidSettings,
): Unpaid {
  const readers = asciiJson(forReaders(route, challenges, settings)).slice(1, -1)
  const problems = new Map<string, string>()
  return ({ resource, scope, code, detail, wouldFail, ignored, headers: more }) => {
    const headers: Record<string, string> = {
      'Content-Type': PROBLEM_TYPE,
      'Cache-Control': 'no-store',
      ...more,
    }
    const members: string[] = []
    for (const challenge of challenges) {
      const issued = challenge.issue({ resource, scope, error: code })
      Object.assign(headers, issued.headers)
      members.push(issued.members)
    }
    let said = problems.get(code)
    if (said === undefined) {
      said = asciiJson(problemOf(code)).slice(1, -1)
      problems.set(code, said)
    }
    members.push(said, `"detail":${asciiJson(detail)}`, readers)
    if (ignored !== undefined) members.push(`"ignored_parameters":${ignored}`)
    if (wouldFail !== undefined) members.push(`"would_fail":${wouldFail}`)
    return { status: 402, headers, body: `{${members.join(',')}}`, code }
  }
}

function problemOf(code: ErrorCode): JsonObject {
  const { title, hint, retryable } = ERRORS[code]
  return { type: problemType(code), title, status: 402, code, hint, charged: 'no', retryable }
}

function forReaders(
  route: Route,
  challenges: readonly Challenge[],
  { baseUrl, docs }: UnpaidSettings,
): JsonObject {
  const { operation, sample, name } = route
  return {
    ...(operation.price === undefined
      ? {}
      : { price: { amount: formatPrice(operation.price), currency: 'USD' } }),
    ...(sample === undefined ? {} : { sample: baseUrl + sample }),
    docs: `${baseUrl}${docs}#${name}`,
    ...(isUpfront(route) ? { charging: charging(route) } : {}),
    ...(challenges.some(({ published }) => 'x402Version' in published) ? { client: CLIENT } : {}),
  }
}

import { ERRORS } from '../../../src/engine/base/errors.ts'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import type { Answer } from './connection.ts'

/** Part of fuzzed texts: its presence in a header, or unescaped in a page, is a vulnerability. */
export const CANARY = 'zqx<"\'&>zq'

/** Codes of a 5xx that a request alone may cause. */
const HONEST = ['not_implemented', 'not_configured']

/** Texts that only a library, a stack trace or this machine would contain. */
const INSIDE =
  /\b(?:TypeError|SyntaxError|RangeError|URIError|ReferenceError)\b|Cannot read propert|is not a function|\bat \S+:\d+:\d+|node:internal|node_modules|\/src\/|\bviem\b|\bajv\b|\blmdb\b/

/** Name of an answer, from status and code; throws when the answer breaks a rule that holds for any request. */
export function checkAnswer(answer: Answer, method = 'GET'): string {
  const { status, headers, body } = answer
  const faults = [...faultsOfHeaders(answer), ...(method === 'HEAD' ? [] : faultsOfBody(answer))]
  if (faults.length === 0) return `${status}${status < 400 ? '' : codeOf(parse(body))}`
  const shown = headers.filter(([name]) => name !== 'payment-required').map((line) => line.join(': '))
  throw new Error([faults.join('; '), status, ...shown, '', body.slice(0, 1_000)].join('\n'))
}

function codeOf(body: unknown): string {
  return isJsonObject(body) && typeof body['code'] === 'string' ? ` ${body['code']}` : ''
}

function faultsOfHeaders({ headers, broken }: Answer): string[] {
  const showing = headers.filter(([, value]) => value.includes('zqx<'))
  return [
    ...broken.map((line) => `the header line ${JSON.stringify(line)}`),
    ...showing.map(([name]) => `${name} shows what was sent`),
  ]
}

function faultsOfBody({ status, headers, body }: Answer): string[] {
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  if (type.startsWith('text/html') && body.includes('zqx<')) return ['the page holds unescaped text']
  switch (status) {
    case 100:
    case 204:
    case 304:
      return []
    case 200:
      return faultsOfSuccess(parse(body), type)
    case 422:
      return isValidationError(parse(body), type) ? [] : ['422 without an HTTPValidationError']
    case 402:
      return faultsOfChallenge(headers, body, type)
    default:
      return faultsOfProblem(status, parse(body), type)
  }
}

/** The wallet of the fuzzer is empty: no paid call may be answered. */
function faultsOfSuccess(body: unknown, type: string): string[] {
  if (type.includes('json') && body === undefined) return ['200 with broken JSON']
  const endpoint = isJsonObject(body) ? body['endpoint'] : undefined
  return typeof endpoint === 'string' && endpoint.startsWith('/paid/') ? ['paid work was given away'] : []
}

function faultsOfProblem(status: number, body: unknown, type: string): string[] {
  if (type !== 'application/problem+json' || !isJsonObject(body)) return [`${status} is no problem document`]
  const faults = isProblem(body, status) ? [] : [`${status} with the wrong members`]
  const { code } = body
  if (status >= 500 && !HONEST.some((honest) => honest === code))
    faults.push('a 5xx that no request may bring about')
  return faults
}

function faultsOfChallenge(headers: Answer['headers'], body: string, type: string): string[] {
  const header = headers.find(([name]) => name === 'payment-required')?.[1] ?? ''
  const required = parse(Buffer.from(header, 'base64').toString('utf8'))
  if (!isJsonObject(required) || !Array.isArray(required['accepts'])) return ['402 without PAYMENT-REQUIRED']
  if (type.startsWith('text/html')) return []
  const problem = parse(body)
  if (!isJsonObject(problem) || !isProblem(problem, 402)) return ['402 with the wrong members']
  const { accepts } = required
  const due = accepts.map((offer) => (isJsonObject(offer) ? offer['amount'] : undefined))
  const named = Array.isArray(problem['accepts']) ? problem['accepts'] : []
  const differs =
    problem['x402Version'] === 1
      ? problem['error'] !== required['error'] ||
        named.length === 0 ||
        !named.every((offer) => isJsonObject(offer) && due.includes(offer['maxAmountRequired']))
      : Object.entries(required).some(
          ([name, value]) => JSON.stringify(problem[name]) !== JSON.stringify(value),
        )
  return differs ? ['the body of the 402 does not hold what its header says'] : []
}

function isProblem(body: JsonObject, status: number): boolean {
  const { type, title, status: said, detail, code, hint, charged, retryable } = body
  if (typeof detail !== 'string' || INSIDE.test(detail)) return false
  const known = Object.entries(ERRORS).find(([name]) => name === code)?.[1]
  return (
    [type, title].every((text) => typeof text === 'string') &&
    // The detail of an unpaid 402 says what to do.
    (typeof hint === 'string' || (hint === undefined && code === 'payment_required')) &&
    known?.status === status &&
    said === status &&
    charged === 'no' &&
    retryable === known.retryable
  )
}

function isValidationError(body: unknown, type: string): boolean {
  if (!type.startsWith('application/json') || !isJsonObject(body) || !Array.isArray(body['detail']))
    return false
  const { detail } = body
  return detail.length > 0 && detail.every((item) => isJsonObject(item) && Array.isArray(item['loc']))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

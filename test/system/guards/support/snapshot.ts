import { isDeepStrictEqual } from 'node:util'
import { Document, visit } from 'yaml'
import type { Answer } from './buyer.ts'
import { messageOf } from './buyer.ts'

export type Tree = { readonly [name: string]: unknown }

/** Names that replace addresses, by the address in lower case. */
export type Names = ReadonlyMap<string, string>

/** An answer in readable form: encoded parts are decoded, and values that change from run to run are replaced by names. */
export function snapshotOf(answer: Answer, names: Names): Tree {
  const headers = Object.fromEntries(
    Object.entries(answer.headers).flatMap(([name, value]) =>
      HOP_BY_HOP.has(name) ? [] : [[name, decodeHeader(name, value)]],
    ),
  )
  return { status: answer.status, headers: stable(headers, names), body: stable(decodeBody(answer), names) }
}

/** Headers of the connection, not of the answer. */
const HOP_BY_HOP: ReadonlySet<string> = new Set(['connection', 'date', 'keep-alive'])
const VOLATILE_HEADERS: ReadonlySet<string> = new Set([
  'retry-after',
  'content-length',
  'etag',
  'last-modified',
  'x-request-id',
])

function decodeHeader(name: string, value: string): unknown {
  if (VOLATILE_HEADERS.has(name)) return `<${name}>`
  if (['payment-required', 'payment-response', 'x-payment-response'].includes(name))
    return parse(fromBase64(value))
  if (name === 'payment-receipt') return parse(fromBase64(value))
  if (name !== 'www-authenticate' || !value.startsWith('Payment ')) return value
  const members = Array.from(value.matchAll(/([a-z]+)="((?:[^"\\]|\\.)*)"/g), ([, key = '', text = '']) => [
    key,
    key === 'request' || key === 'opaque' ? parse(fromBase64(text)) : text,
  ])
  return { Payment: Object.fromEntries(members) }
}

function decodeBody(answer: Answer): unknown {
  const type = answer.headers['content-type'] ?? ''
  if (/html/.test(type)) return '<html>'
  if (/event-stream/.test(type)) return { event: withoutCopy(messageOf(answer)) }
  return withoutCopy(parse(answer.body))
}

/** Results of MCP contain the answer twice, as text and as structured content. */
function withoutCopy(message: unknown): unknown {
  if (!isTree(message) || !isTree(message['result'])) return message
  const { content, structuredContent, ...result } = message['result']
  const [first] = Array.isArray(content) ? content : []
  const copied = isTree(first) && isDeepStrictEqual(parse(String(first['text'])), structuredContent)
  return {
    ...message,
    result: {
      ...result,
      structuredContent,
      content: copied && Array.isArray(content) && content.length === 1 ? '(the same as text)' : content,
    },
  }
}

const NAMED: readonly (readonly [RegExp, string])[] = [
  [/pay_[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])/g, '<payment>'],
  [/0x[0-9a-fA-F]{130,}/g, '<signature>'],
  [/0x[0-9a-fA-F]{64}(?![0-9a-fA-F])/g, '<hash>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>'],
  // Present or not, depending on whether the fee or the balance was requested first.
  [/(?<=cannot be reached now); nothing was charged$/g, ''],
  [/(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g, '<digest>'],
]

const VOLATILE_MEMBERS: ReadonlySet<string> = new Set(['token', 'nonce', 'retry_after', 'revision'])

/** Sorts members by name: the order on the wire is not part of the snapshot. */
function stable(value: unknown, names: Names): unknown {
  if (typeof value === 'string') {
    const addressed = value.replace(
      /0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/g,
      (found) => names.get(found.toLowerCase()) ?? found,
    )
    return NAMED.reduce((text, [pattern, name]) => text.replace(pattern, name), addressed)
  }
  if (Array.isArray(value)) return value.map((each) => stable(each, names))
  if (!isTree(value)) return value
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    members.map(([name, each]) => [
      name,
      VOLATILE_MEMBERS.has(name) && (typeof each === 'string' || typeof each === 'number')
        ? `<${name}>`
        : stable(decoded(name, each), names),
    ]),
  )
}

/** The decoded `opaque` member of a challenge. */
function decoded(name: string, value: unknown): unknown {
  return name === 'opaque' && typeof value === 'string' ? parse(fromBase64(value)) : value
}

const AS_UNPAID = '(as unpaid)'

/** Leaves out members that equal those of the unpaid answer to the same operation, and lists their names. */
export function omitUnpaid(answer: Tree, unpaid: Tree | undefined, always: readonly string[] = []): Tree {
  if (unpaid === undefined) return answer
  const same: string[] = []
  const own: [string, unknown][] = []
  for (const [name, value] of Object.entries(answer)) {
    const other = unpaid[name]
    if (isDeepStrictEqual(value, other) && !always.includes(name)) same.push(name)
    else own.push([name, isTree(value) && isTree(other) ? omitUnpaid(value, other) : value])
  }
  return Object.fromEntries(same.length === 0 ? own : [...own, [AS_UNPAID, same.join(', ')]])
}

/** Collections up to this length are written in one line. */
const LINE = 100

export function toYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Collection: (_, node) => {
      if (JSON.stringify(node.toJSON()).length <= LINE) node.flow = true
    },
  })
  return document.toString({ lineWidth: 0 })
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

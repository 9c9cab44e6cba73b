import type { IncomingMessage } from 'node:http'
import { isJsonObject } from '../json.ts'

/** More than any call needs: arguments are texts of some thousand characters. */
const LARGEST_BODY = 262_144

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Hosts that requests may name: those of the service's own addresses, and this machine's own while nobody else can come. */
export function hostsOf(addresses: Iterable<string>, bound: string | undefined): ReadonlySet<string> {
  const own = Array.from(addresses, (url) => new URL(url).hostname)
  const local = bound !== undefined && (bound === '::1' || bound.startsWith('127.'))
  return new Set(local ? [...own, ...LOOPBACK] : own)
}

/** Why a request is not let in: a page of another site may have sent it, through a name that leads to this machine. */
export function refusalOf(
  { host, origin }: { readonly host: string; readonly origin: string | undefined },
  hosts: ReadonlySet<string>,
): string | undefined {
  if (!hosts.has(hostnameOf(`http://${host}`))) return 'this Host is not served here'
  if (origin !== undefined && !hosts.has(hostnameOf(origin))) return 'this Origin may not call here'
  return undefined
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : ''
}

export type Body =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'fault'; readonly status: 400 | 413; readonly code: number; readonly message: string }
  /** The client has gone away in the middle of it. */
  | { readonly kind: 'aborted' }

/** Reads what was posted. */
export async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request) {
      const piece = Buffer.from(chunk)
      bytes += piece.length
      if (bytes > LARGEST_BODY) return TOO_LARGE
      chunks.push(piece)
    }
  } catch (fault) {
    if (request.destroyed) return { kind: 'aborted' }
    throw fault
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (isDeeperThan(DEEPEST, value)) return TOO_DEEP
    return { kind: 'json', value: Array.isArray(value) ? value.map(nestMeta) : nestMeta(value) }
  } catch {
    return { kind: 'fault', status: 400, code: -32700, message: 'the body is not JSON' }
  }
}

const TOO_LARGE: Body = {
  kind: 'fault',
  status: 413,
  code: -32000,
  message: `the body is larger than ${LARGEST_BODY / 1024} KiB`,
}

/** More than any schema of arguments has; what reads them is recursive. */
const DEEPEST = 64

const TOO_DEEP: Body = {
  kind: 'fault',
  status: 400,
  code: -32600,
  message: `the body is nested more than ${DEEPEST} levels deep`,
}

function isDeeperThan(levels: number, value: unknown): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
  return false
}

/** MPP allows `_meta` beside `params` too, where MCP knows none. */
function nestMeta(message: unknown): unknown {
  if (!isJsonObject(message)) return message
  const { _meta: outer, ...rest } = message
  if (!isJsonObject(outer)) return message
  const params = isJsonObject(rest['params']) ? rest['params'] : {}
  const inner = isJsonObject(params['_meta']) ? params['_meta'] : {}
  return { ...rest, params: { ...params, _meta: { ...outer, ...inner } } }
}

import type { ApiKey, ApiKeys } from './catalog.ts'
import { error, type Issue } from './issue.ts'
import { type CheckContext, linesOf, withoutComment } from './check-context.ts'

export const API_KEY_HEADER = 'X-API-Key'

const LINE = /^([0-9a-f]{64})\s+(\S+)$/
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

export function isCustomerName(text: string): boolean {
  return NAME.test(text)
}

/** The key of a line of the file, which may end in a comment; undefined when it is none. */
export function readApiKey(line: string): ApiKey | undefined {
  const [, digest, name] = LINE.exec(withoutComment(line)) ?? []
  return digest === undefined || name === undefined || !isCustomerName(name) ? undefined : { digest, name }
}

/** Undefined when the catalog has no keys. */
export function compileApiKeys(context: CheckContext): ApiKeys | undefined {
  const { api_keys: declared } = context.declared.access ?? {}
  if (declared === undefined) return undefined
  const keys = (linesOf(context, declared.file) ?? []).flatMap(({ word }) => readApiKey(word) ?? [])
  return { header: declared.header ?? API_KEY_HEADER, keys }
}

/** Checks the file of digests. */
export function* checkApiKeys(context: CheckContext): Generator<Issue> {
  const { declared, document } = context
  const { api_keys: keys } = declared.access ?? {}
  if (keys === undefined) return
  const at = document.at(['access', 'api_keys', 'file'])
  const lines = linesOf(context, keys.file)
  if (lines === undefined) {
    yield error('file_unreadable', at, `${keys.file} cannot be read: "ratecard keys new NAME" creates it`)
    return
  }
  for (const { number, word } of lines)
    if (readApiKey(word) === undefined)
      yield error(
        'api_key_invalid',
        at,
        `${keys.file}:${number}: a line is the SHA-256 digest of a key and the name of its customer: "ratecard keys new NAME" writes one`,
      )
}

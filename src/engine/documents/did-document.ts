import { basePathOf } from '../base/base-path.ts'
import type { ServerDocument } from './mcp-servers.ts'
import { type Facts, printJson } from './registry.ts'

/**
 * The keys that sign receipts, where the method did:web looks for them: below a base path, a DID names `did.json` in that
 * folder and not `/.well-known/did.json`.
 */
export function didDocuments({ baseUrl, didDocument }: Facts): ServerDocument[] {
  if (didDocument === undefined) return []
  const paths = ['/.well-known/did.json', ...(basePathOf(baseUrl) === '' ? [] : ['/did.json'])]
  const text = printJson(didDocument)
  return paths.map((path) => ({ path, type: 'application/did+json', text, headers: {} }))
}

import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKeys } from '../catalog/catalog.ts'

/** Finds the customer of a request by its key; undefined: it has none, or an unknown one. */
export type FindCustomer = (headers: IncomingHttpHeaders) => string | undefined

/**
 * Compares digests, so how long the search takes tells nothing about a key. The header of keys counts before
 * `Authorization: Bearer`; the other schemes of `Authorization` belong to payments.
 */
export function customerFinder({ header, keys }: ApiKeys): FindCustomer {
  const names = new Map(keys.map(({ digest, name }) => [digest, name]))
  const own = header.toLowerCase()
  return (headers) => {
    const key = headers[own] ?? BEARER.exec(headers.authorization ?? '')?.[1]
    return typeof key === 'string' && key !== '' ? names.get(hash('sha256', key, 'hex')) : undefined
  }
}

const BEARER = /^Bearer +(\S+) *$/i

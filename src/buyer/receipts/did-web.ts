import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { isLoopback } from '../../engine/base/loopback.ts'

export type FoundKey =
  { readonly kind: 'found'; readonly jwk: JsonObject } | { readonly kind: 'refused'; readonly reason: string }

/** Milliseconds to wait for a document. */
const PATIENCE_MS = 10_000

/**
 * The key that the service of a resource publishes under this DID URL (method did:web): anybody can sign a receipt that
 * names a service, and only the service can publish the key.
 */
export async function publishedKey(kid: string, resource: string): Promise<FoundKey> {
  const [did = ''] = kid.split('#')
  const place = placeOf(did)
  if (place === undefined) return refuse('its key is not one of a did:web')
  const { origin, pathname } = new URL(resource)
  const isOwn = origin === place.service.origin && `${pathname}/`.startsWith(place.service.pathname)
  if (!isOwn) return refuse(`it is signed by ${did}, which is not the service of ${resource}`)
  const document = await read(place.document)
  if (document === undefined) return refuse(`${place.document} cannot be read`)
  const { verificationMethod, assertionMethod } = document
  const methods = Array.isArray(verificationMethod) ? verificationMethod.filter(isJsonObject) : []
  const jwk = methods.find(({ id }) => id === kid)?.['publicKeyJwk']
  const isForAssertions = Array.isArray(assertionMethod) && assertionMethod.includes(kid)
  if (document['id'] !== did || !isForAssertions || !isJsonObject(jwk))
    return refuse(`${place.document} does not list its key`)
  return { kind: 'found', jwk }
}

interface DidPlace {
  /** The origin with the path below which the service is. */
  readonly service: URL
  readonly document: string
}

/** By https, and by http on this machine. */
function placeOf(did: string): DidPlace | undefined {
  const [method, kind, host, ...segments] = did.split(':')
  if (method !== 'did' || kind !== 'web' || host === undefined) return undefined
  const address = decodeURIComponent(host)
  const scheme = isLoopback(`http://${address}`) ? 'http' : 'https'
  const base = `${scheme}://${address}/${segments.map((each) => `${each}/`).join('')}`
  if (!/^[\w.-]+(?::\d+)?$/.test(address) || !URL.canParse(base)) return undefined
  const file = segments.length === 0 ? '.well-known/did.json' : 'did.json'
  return { service: new URL(base), document: new URL(file, base).href }
}

async function read(url: string): Promise<JsonObject | undefined> {
  try {
    const headers = { accept: 'application/did+json, application/json' }
    const response = await fetch(url, {
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const value: unknown = response.ok ? await response.json() : undefined
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function refuse(reason: string): FoundKey {
  return { kind: 'refused', reason }
}

import type { Access, Credential, Operation } from './catalog.ts'
import { type CheckContext, entriesOf, handlerOf, PROXY, routesOf } from './check-context.ts'
import { error, type Issue, warning } from './issue.ts'
import type { Declared, DeclaredRoute } from './schema.ts'

/** What callers can send in the place of our credential: one in an address would end in logs on its way. */
type CallerCredential = Exclude<Credential, { readonly kind: 'query' }>

export function isSentByCallers(credential: Credential | undefined): credential is CallerCredential {
  return credential !== undefined && credential.kind !== 'query'
}

/** An answer that depends on the payer is sold to payers only. */
export function compileAccess(
  { price, upstream, tool }: Pick<Operation, 'price' | 'upstream' | 'tool'>,
  own: DeclaredRoute['access'],
  usual: Declared['access'],
): Access {
  const isSold = price !== undefined && tool?.requires !== 'payer'
  return {
    apiKeys: isSold && usual?.api_keys !== undefined && own?.api_keys !== false,
    upstream: isSold && isSentByCallers(upstream?.credential) && (own?.upstream ?? usual?.upstream ?? false),
  }
}

/** Checks that an upstream that lets callers in can tell them from strangers. */
export function* checkAccess({ declared, document }: CheckContext): Generator<Issue> {
  for (const { entry, at } of entriesOf(declared))
    if (entry.access?.upstream !== undefined && at[0] === 'tools')
      yield error('key_misplaced', document.atKey([...at, 'access', 'upstream']), MISPLACED)
  const usual = declared.access?.upstream ?? false
  let applies = false
  for (const place of routesOf(declared)) {
    const { route, at } = place
    const written = [...at, 'access', 'upstream']
    if (handlerOf(place) !== PROXY) {
      if (route.access?.upstream !== undefined)
        yield error('key_misplaced', document.atKey(written), MISPLACED)
      continue
    }
    if (route.price === 'free' || !(route.access?.upstream ?? usual)) continue
    applies = true
    const position = document.has(written) ? document.at(written) : document.atKey(at)
    const { credential } = route
    if (credential === undefined) {
      const message =
        'needs a "credential": an upstream that asks us for none answers strangers too, and they would call for nothing'
      if (route.access?.upstream === true) yield error('access_without_credential', position, message)
    } else if (typeof credential === 'object' && credential.query !== undefined) {
      const message =
        'callers cannot send a credential that belongs into the query, so everybody pays: write "access: { upstream: false }"'
      yield warning('access_by_query', position, message)
    }
  }
  if (usual && !applies)
    yield warning(
      'access_unused',
      document.at(['access', 'upstream']),
      'no route has "handler: proxy", so no upstream knows callers',
    )
}

const MISPLACED = '"upstream" belongs to handler: proxy'

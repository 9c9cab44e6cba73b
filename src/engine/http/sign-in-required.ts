import { JSON_MEDIA } from '../catalog/body.ts'
import { asciiJson, compact } from '../base/json.ts'
import { demandSignIn, type FoundSigner, type SignInDeps } from '../sign-in/signer.ts'
import { problem, type Reply } from './reply.ts'
import type { Revision, ServedRoute } from './revision.ts'

interface Asked {
  readonly served: Pick<ServedRoute, 'route'>
  readonly revision: Pick<Revision, 'catalog'>
  /** Absolute URL of the concrete path. */
  readonly resource: string
}

/**
 * Asks for a signature as x402’s extension does for what is free: by a 402 without offers, which is what its clients
 * answer. In tools the same has the status of the problem.
 */
export function signInReply(
  deps: Omit<SignInDeps, 'ledger'>,
  { served: { route }, revision: { catalog }, resource: url }: Asked,
  { code, detail }: Extract<FoundSigner, { readonly kind: 'refused' }>,
): Reply {
  const networks = catalog.payments.x402?.networks ?? []
  const extensions = demandSignIn(deps, { uri: url, networks })
  const { summary, operation } = route
  const resource = { url, description: summary, mimeType: operation.response.mediaType ?? JSON_MEDIA }
  const required = { x402Version: 2, error: code, resource, accepts: [], extensions }
  const headers = { 'PAYMENT-REQUIRED': Buffer.from(asciiJson(required)).toString('base64') }
  const extra = compact({ status: 402, extensions })
  return { ...problem(code, detail, { charged: 'no', headers, extra }), status: 402 }
}

import { JSON_MEDIA } from '../catalog/body.ts'
import { asciiJson } from '../base/json.ts'
import { demandSignIn, type NoSigner, type SignInDeps } from '../sign-in/find-signer.ts'
import { problem, type Reply } from './reply.ts'
import type { Revision, ServedRoute } from './revision.ts'

interface Asked {
  readonly served: Pick<ServedRoute, 'route'>
  readonly revision: Pick<Revision, 'catalog'>
  /** Absolute URL of the concrete path. */
  readonly resource: string
}

/** Asks for a signature as x402’s extension does for what is free: by a 402 without offers, which its clients answer. */
export function signInReply(
  deps: Omit<SignInDeps, 'ledger'>,
  { served: { route }, revision: { catalog }, resource: url }: Asked,
  { kind, detail }: NoSigner,
): Reply {
  const code = kind === 'missing' ? 'sign_in_required' : 'sign_in_refused'
  const networks = catalog.payments.x402?.networks ?? []
  const extensions = demandSignIn(deps, { uri: url, networks })
  const { summary, operation } = route
  const resource = { url, description: summary, mimeType: operation.response.mediaType ?? JSON_MEDIA }
  const required = { x402Version: 2, error: code, resource, accepts: [], extensions }
  const headers = { 'PAYMENT-REQUIRED': Buffer.from(asciiJson(required)).toString('base64') }
  return problem(code, detail, { charged: 'no', headers, extra: required })
}
